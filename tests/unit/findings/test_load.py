"""Runs that other processes disturbed: named, and said of what rests on them."""

import numpy as np
import pandas as pd

from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.general import disturbed_runs, other_load
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.machine_load import LOAD, OTHERS, load_of
from tests.fakes.finding_rows import only
from tests.fakes.plan import whole_plan


def study(loads: dict[int, list[float | None]]) -> ExperimentResults:
    """Points of some ranks with the load of each of their runs."""
    runs, rows = [], []
    for ranks, shares in loads.items():
        for repeat, share in enumerate(shares):
            run_id = f"r{ranks}-{repeat}"
            point = {"ranks": ranks}
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
            record = {} if share is None else {"load": {"others": share}}
            rows.append(
                {"run_id": run_id, "source": "measured", "started": None, "benchmark": "b",
                 "repeat": repeat, "samples": None, "warnings": None,
                 LOAD: as_text(load_of(record)), "speed_mean_run": 1.0 + repeat / 100}
            )  # fmt: skip
    entry = {"name": "e", "axes": ["ranks"], "runs": runs, "main_metric": "speed", "fixed": {}}
    plan = whole_plan({"experiments": [entry]})
    summary = pd.DataFrame(rows)
    meaning = {"unit": "x", "better": "higher", "scope": "total"}
    summary.attrs["metrics"] = {"b": {"speed": meaning}}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])


def test_disturbed_runs_are_counted_and_named() -> None:
    found = study({1: [0.01, 0.02, 0.4], 2: [0.12, 0.0, None]})
    assert [row["run_id"] for row in disturbed_runs(found)] == ["r1-2", "r2-0"]
    finding = only(other_load(found))
    assert finding.state == "attention" and finding.reason == "estimates leave out 2"
    assert finding.sentence == (
        "Other processes disturbed 2 of 6 runs, taking up to 40.0 % of the cores."
    )
    assert finding.evidence["key"]["run_id"] == ["r1-2", "r2-0"]


def test_old_records_and_quiet_machines_say_nothing() -> None:
    for loads in ([None, None], [0.05, 0.0]):
        found = study({1: list(loads), 2: list(loads)})
        assert other_load(found) == []
    assert OTHERS not in study({1: [None]}).rows("runs")[0]
    assert np.isclose(study({1: [0.05]}).rows("runs")[0][OTHERS], 0.05)
    assert load_of({"load": {"others": 0.25}}) == 0.25
