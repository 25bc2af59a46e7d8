"""Efficiencies that a source states: the largest scale's value is a sentence."""

from scalesweep.aspects.scaling.shares import stated_efficiency
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.finding_rows import only, scaling, study, value


def profiles(last: float, metric: str = "parallel_efficiency") -> ExperimentResults:
    rows = []
    for ranks, share in ((1, 0.99), (16, last)):
        row = {"ranks": ranks, "source": "imported", "repeats": 1}
        row |= value("run", (share, None, None), metric)
        rows.append(row | value("run", (share + 0.01, None, None), "load_balance"))
    s = study(rows, ["ranks"], scaling="strong", main_metric=metric)
    frame = s.tables["points"]
    assert frame is not None
    unit = {"unit": "1", "better": "higher", "scope": "total"}
    frame.attrs["units"] = {
        f"{name}_mean_run": {**unit, "label": name.replace("_", " ").capitalize()}
        for name in (metric, "load_balance")
    }
    return s


def test_a_profile_states_its_efficiency() -> None:
    s = profiles(0.16)
    found = only(stated_efficiency(s))
    assert found.sentence == "Stated parallel efficiency at the largest scale, 16 ranks: 16.0 %."
    assert found.reason == "its lowest factor is load balance, 17.0 %"
    assert [(one.name, one.value, one.unit) for one in found.numbers] == [
        ("load balance", 0.17, "1"),
        ("efficiency", 0.16, "1"),
    ]


def test_it_is_silent_on_rates_and_other_shares() -> None:
    assert stated_efficiency(scaling((0.9, 0.88, 0.92))) == []
    assert stated_efficiency(profiles(0.5, "hit_share")) == []
    assert stated_efficiency(study([{"ranks": 1, "repeats": 0}], ["ranks"])) == []
