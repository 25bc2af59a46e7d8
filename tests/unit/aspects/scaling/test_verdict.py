"""The verdict: up to which scale a series is efficient, and what may not be said of it."""

import pytest

from scalesweep.aspects.scaling.findings import (
    UNDECIDED,
    scaling_verdict,
    verdicts,
)
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.findings.totals import unsure_total
from tests.fakes.finding_rows import T, Triple, eff, only, scaling, study, value


def verdict(*effs: Triple) -> Finding:
    return only(scaling_verdict(scaling(*effs)))


def several(*effs: Triple, more: str = "a") -> ExperimentResults:
    """A series for each efficiency at two ranks, told apart by the parameter ``more``."""
    rows = []
    for a, triple in enumerate(effs):
        rows.append(
            {"ranks": 1, more: a, **value("later", (10, 9, 11)), **eff("later", (1, None, None))}
        )
        rows.append({"ranks": 2, more: a, **value("later", (10, 9, 11)), **eff("later", triple)})
    return study(rows, ["ranks", more])


def test_it_names_the_largest_efficient_scale_and_the_first_that_is_not() -> None:
    found = verdict((0.9, 0.88, 0.92), (0.7, 0.68, 0.72), (0.6, 0.5, 0.7))
    assert found.state == "clear"
    assert found.sentence == "Efficient up to 2 ranks; efficiency at 4 ranks: 70 [67, 73] %."
    assert found.evidence["key"]["ranks"] == 4
    assert [(one.name, one.value, one.unit) for one in found.numbers] == [
        ("efficient up to", 2, "ranks"),
        ("efficiency", 0.7, "1"),
    ]
    # The interval that decides is wider than the one of 95 %.
    low, high = found.numbers[1].low, found.numbers[1].high
    assert low is not None and high is not None and low < 0.68 and high > 0.72


def test_a_slow_scale_does_not_hide_that_more_ranks_do_well() -> None:
    dip, good = (0.5, 0.49, 0.51), (0.93, 0.9, 0.96)
    found = verdict(dip, good, good)
    assert found.state == "clear"
    assert found.sentence == "Efficient up to 8 ranks; efficiency at 8 ranks: 93 [88, 98] %."
    # The one to run at is followed by the first below it.
    found = verdict(dip, good, (0.6, 0.5, 0.7))
    assert found.sentence == "Efficient up to 4 ranks; efficiency at 8 ranks: 60 [46, 79] %."
    assert verdict(dip, good, (0.79, 0.7, 0.9)).state == "open"


def test_what_changes_with_the_ranks_is_named() -> None:
    rows = [
        {
            "ranks": n,
            "threads": n,
            "batch_size": n,
            **value("later", (10, 9, 11)),
            **eff("later", e),
        }
        for n, e in ((1, (1, None, None)), (2, (0.67, 0.65, 0.69)))
    ]
    found = only(scaling_verdict(study(rows, ["ranks", "threads", "batch_size"])))
    assert found.sentence == "Does not scale; efficiency at 2 ranks: 67 [64, 70] %."
    assert found.flags == ("also changed: threads (1 to 2)",)


def test_an_interval_that_includes_80_percent_decides_nothing() -> None:
    found = verdict((0.9, 0.88, 0.92), (0.79, 0.74, 0.84))
    assert found.state == "open"
    assert found.sentence.startswith("Not decided; efficiency at 4 ranks: 79 [71, 88] %")
    assert "includes 80 %" in found.reason
    assert found.next.startswith("take either scale")
    near = verdict((0.9, 0.88, 0.92), (0.7, 0.6, 0.82))
    assert near.next == "add 3 repeats (9 runs of this series): `repeats` in the campaign"
    # One that lies above, one without an interval.
    found = verdict((0.9, 0.88, 0.92), (0.7, None, None))
    assert found.state == "open" and "4 ranks: 70.0 %" in found.sentence
    assert found.reason == "one repeat"


def test_far_more_than_the_ideal_is_no_good_result() -> None:
    """As in a published table whose first epochs take 150 s at one rank and 106 s at 1,024."""
    found = verdict((0.92, 0.9, 0.94), (1.52, 1.45, 1.59))
    assert found.state == "open"
    assert found.sentence.startswith("Not decided; efficiency at 4 ranks: 152 [141, 164] %")
    assert "check both" in found.reason
    (one,) = verdicts(scaling((0.92, 0.9, 0.94), (1.52, 1.45, 1.59)))
    assert (one.kind, one.run) == (UNDECIDED, 2)
    single = verdict((0.97, None, None), (1.52, None, None))
    assert single.state == "open" and "more than the ideal" in single.reason
    # Caches may give some more, and scatter may reach far.
    assert verdict((0.92, 0.9, 0.94), (1.1, 1.05, 1.15)).state == "clear"
    assert "check both" not in verdict((1.4, 0.7, 2.8)).reason


@pytest.mark.parametrize("odd", [(0.001, 0.00099, 0.00101), (0.001, None, None)])
def test_a_jump_to_a_thousandth_is_a_change_of_unit_and_no_result(odd: Triple) -> None:
    found = verdict((0.99, 0.98, 1.0), odd)
    assert found.state == "open"
    assert "change of unit" in found.reason
    # Where all but the base are in the other unit.
    every = verdicts(scaling(odd, odd, odd))
    assert {one.kind for one in every} == {UNDECIDED}
    # What falls bit by bit is no jump, however far.
    falls = [(0.06**n, 0.05**n, 0.07**n) for n in range(1, 5)]
    assert verdict(*falls).state == "clear"


APART: dict[str, tuple[Triple, float, str]] = {
    "far": ((0.999, 0.991, 1.008), 0.9, "open"),
    "little": ((0.999, 0.991, 1.008), 0.02, "clear"),
    "little, but as much as it takes": ((0.82, 0.81, 0.83), 0.02, "open"),
}


@pytest.mark.parametrize("row", APART)
def test_ranks_that_print_different_totals_leave_nothing_clear_on_one_of_them(row: str) -> None:
    triple, apart, level = APART[row]
    warning = f"metric '{T}': 4 ranks disagree: 2000 to {2000 * (1 + apart)}, using 2000"
    runs = [
        {"run_id": "r0", "ranks": 1, "source": None, "warnings": None},
        {"run_id": "r1", "ranks": 2, "source": None, "warnings": f"{warning}; and more"},
    ]
    one = scaling(triple, runs=runs)
    found = only(scaling_verdict(one))
    assert found.state == level
    assert bool(unsure_total(one, T)) == (apart > 0.05)
    # Of another metric nothing rests on it.
    runs[1]["warnings"] = warning.replace(T, "loss")
    assert only(scaling_verdict(scaling(triple, runs=runs))).state == "clear"


def test_a_scale_without_result_is_told() -> None:
    s = scaling((0.9, 0.88, 0.92))
    s.entry["runs"].append(
        {"run_id": "x", "repeat": 0, "status": "failed", "cause": "TIMEOUT", "detail": "",
         "point": {"ranks": 64}}
    )  # fmt: skip
    assert only(scaling_verdict(s)).flags == ("no result at 64 ranks",)


def test_series_that_say_the_same_share_a_sentence_with_their_range() -> None:
    s = several(*[(x := 0.9 + i / 100, x - 0.005, x + 0.005) for i in range(6)])
    found = only(scaling_verdict(s))
    assert found.sentence == (
        "All 6 series: efficient up to 2 ranks; efficiency at 2 ranks (the lowest of 6): "
        "90.0 [89.2, 90.8] %."
    )


def test_a_time_that_leads_a_table_hides_no_efficiency() -> None:
    """A published table leads with its times; how it scales is in its rates."""
    rows = []
    for ranks, triple in ((1, (1.0, None, None)), (2, (0.9, None, None))):
        row = {"ranks": ranks, **value("run", (3.0, None, None), "seconds")}
        row |= value("run", (10.0 * ranks, None, None), "throughput")
        names = ("throughput_eff_run", "throughput_eff_low_run", "throughput_eff_high_run")
        rows.append(row | dict(zip(names, triple, strict=True)))
    s = study(rows, ["ranks"], main_metric="seconds")
    assert s.main is not None and s.main.metric == "seconds"
    assert only(scaling_verdict(s)).sentence == "Not decided; efficiency at 2 ranks: 90.0 %."
