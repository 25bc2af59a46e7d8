"""Runs that other processes disturbed: named, and said of what rests on them."""

import numpy as np

from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.general import disturbed_runs, other_load
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.machine_load import LOAD, OTHERS, load_of
from tests.fakes.finding_rows import only
from tests.fakes.rows import study_of


def study(loads: dict[int, list[float | None]]) -> ExperimentResults:
    """Points of some ranks with the load of each of their runs."""
    points = [
        ({"ranks": ranks}, [
            {LOAD: as_text(load_of({} if share is None else {"load": {"others": share}})),
             "speed_mean_run": 1.0 + repeat / 100}
            for repeat, share in enumerate(shares)
        ])
        for ranks, shares in loads.items()
    ]  # fmt: skip
    return study_of(points, {"speed": ("x", "higher")}, main_metric="speed")


def test_disturbed_runs_are_counted_and_named() -> None:
    found = study({1: [0.01, 0.02, 0.4], 2: [0.12, 0.0, None]})
    assert [row["run_id"] for row in disturbed_runs(found)] == ["r1-2-0", "r2-0-1"]
    finding = only(other_load(found))
    assert finding.state == "attention" and finding.reason == "estimates leave out 2"
    assert finding.sentence == (
        "Other processes disturbed 2 of 6 runs, taking up to 40.0 % of the cores."
    )
    assert finding.evidence["key"]["run_id"] == ["r1-2-0", "r2-0-1"]


def test_old_records_and_quiet_machines_say_nothing() -> None:
    for loads in ([None, None], [0.05, 0.0]):
        found = study({1: list(loads), 2: list(loads)})
        assert other_load(found) == []
    assert OTHERS not in study({1: [None]}).rows("runs")[0]
    assert np.isclose(study({1: [0.05]}).rows("runs")[0][OTHERS], 0.05)
    assert load_of({"load": {"others": 0.25}}) == 0.25
