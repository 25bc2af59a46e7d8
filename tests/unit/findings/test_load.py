"""Runs that other processes disturbed: named, and said of what rests on them."""

import json
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, OPEN, Finding
from scalesweep.findings.load import disturbed_runs, other_load, resting_on_disturbed
from scalesweep.tables.machine_load import LOAD, OTHERS, load_text
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
                 "repeat": repeat, "samples": None, "warnings": None, LOAD: load_text(record),
                 "speed_mean_run": 1.0 + repeat / 100}
            )  # fmt: skip
    entry = {"name": "e", "axes": ["ranks"], "runs": runs, "main_metric": "speed", "fixed": {}}
    plan = whole_plan({"experiments": [entry]})
    summary = pd.DataFrame(rows)
    meaning = {"unit": "x", "better": "higher", "scope": "total"}
    summary.attrs["metrics"] = {"b": {"speed": meaning}}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])


def of(ranks: int, level: str = CONFIRMED, **more: Any) -> Finding:
    key = {"ranks": ranks, "source": "measured", **more}
    return Finding("e", "best", level, "It is the best.", {"key": key})


def test_disturbed_runs_are_counted_and_named() -> None:
    found = study({1: [0.01, 0.02, 0.4], 2: [0.12, 0.0, None]})
    assert [row["run_id"] for row in disturbed_runs(found)] == ["r1-2", "r2-0"]
    (finding,) = other_load(found)
    assert finding.level == "warning"
    assert finding.text == (
        "In 2 of 6 runs other processes used more than 10.0 % of the cores, at most 40.0 %: "
        "r1-2 and r2-0; the load of 1 is not known."
    )
    assert finding.evidence["numbers"] == {"r1-2": 0.4, "r2-0": 0.12}


def test_confirmed_findings_say_that_they_rest_on_them() -> None:
    found = study({1: [0.01, 0.02, 0.4], 2: [0.0, 0.0, 0.0]})
    sentences = [of(1), of(2), of(1, OPEN), Finding("e", "x", CONFIRMED, "All.", {"key": {}})]
    told = [one.text for one in resting_on_disturbed(found, sentences)]
    assert told == [
        "It is the best. It rests on 1 of 3 runs that other processes disturbed.",
        "It is the best.", "It is the best.", "All.",
    ]  # fmt: skip


def test_of_runs_whose_load_is_not_known_that_is_said() -> None:
    """It is not known of what runs too short a time."""
    found = study({1: [None, None, 0.4], 2: [0.0, None, None]})
    (told,) = resting_on_disturbed(found, [of(1)])
    assert told.text.endswith(
        "It rests on 1 of 3 runs that other processes disturbed; the load of 2 is not known."
    )


def test_old_records_and_quiet_machines_say_nothing() -> None:
    for loads in ([None, None], [0.05, 0.0]):
        found = study({1: list(loads), 2: list(loads)})
        assert other_load(found) == []
        assert resting_on_disturbed(found, [of(1)]) == [of(1)]
    assert OTHERS not in study({1: [None]}).rows("runs")[0]
    assert np.isclose(study({1: [0.05]}).rows("runs")[0][OTHERS], 0.05)
    assert json.loads(load_text({"load": {"others": 0.25}}) or "") == 0.25
