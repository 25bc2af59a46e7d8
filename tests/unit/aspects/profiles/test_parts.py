"""The table of parts: means over repeats, shares of all parts, and what a run does not have."""

import json
from typing import Any

import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.profiles.figure import part_figures
from scalesweep.aspects.profiles.section import part_table
from scalesweep.aspects.profiles.table import PartTime
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.epoch_curves import PARTS
from tests.fakes.plan import whole_plan


def results_of(points: dict[int, list[dict[str, float] | None]]) -> ExperimentResults:
    """An experiment over ranks whose runs have these seconds by part."""
    rows: list[dict[str, Any]] = []
    runs = []
    for ranks, repeats in points.items():
        for repeat, parts in enumerate(repeats):
            run_id = f"r{ranks}-{repeat}"
            runs.append(
                {"run_id": run_id, "repeat": repeat, "point": {"ranks": ranks}, "status": "done"}
            )
            rows.append(
                {"run_id": run_id, "source": "imported", "samples": pd.NA, "started": None,
                 "warnings": None, PARTS: None if parts is None else json.dumps(parts)}
            )  # fmt: skip
    plan = whole_plan({"experiments": [{"axes": ["ranks"], "runs": runs}]})
    summary = pd.DataFrame(rows)
    summary.attrs["metrics"] = {}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])


def test_parts_are_means_over_the_repeats_with_intervals() -> None:
    results = results_of(
        {1: [{"solve": 3.0, "other": 1.0}, {"solve": 5.0, "other": 1.0}, None], 2: [{"io": 2.0}]}
    )
    rows = {(row.point["ranks"], row.part): row for row in results.of(PartTime)}
    assert [part for ranks, part in rows if ranks == 1] == ["io", "solve", "other"]
    solve = rows[1, "solve"]
    assert (solve.runs, solve.repeats, solve.seconds.value) == (2, 3, 4.0)
    assert solve.seconds.low is not None and solve.seconds.low < 4.0
    assert solve.share is not None
    assert solve.share.value == pytest.approx((3 / 4 + 5 / 6) / 2)
    # What no profile of a point lists took none of its time.
    assert rows[1, "io"].seconds.value == 0 and rows[1, "io"].seconds.low is None
    assert rows[2, "io"].share is not None and rows[2, "io"].share.low is None
    assert results.unit_of("parts", "seconds_low") == "s"
    (drawing,) = part_figures(results)
    assert "The largest part is io at 2 ranks: 100.0 %" in drawing.alt
    table = part_table(results, 10)
    assert table is not None and len(table.rows) == 2


def test_a_profile_of_no_time_has_no_shares_and_runs_without_one_no_table() -> None:
    (row,) = results_of({1: [{"solve": 0.0}]}).of(PartTime)
    assert row.share is None and row.seconds.value == 0
    results = results_of({1: [None], 2: [None]})
    assert results.tables.get("parts") is None and part_figures(results) == []


def test_the_only_point_of_an_experiment_has_its_bar() -> None:
    runs = [{"run_id": "r1-0", "status": "done"}]
    plan = whole_plan({"experiments": [{"axes": [], "runs": runs}]})
    summary = pd.DataFrame(
        [{"run_id": "r1-0", "source": "imported", "samples": pd.NA, "started": None,
          "warnings": None, PARTS: '{"mpi": 1.0, "other": 3.0}'}]
    )  # fmt: skip
    summary.attrs["metrics"] = {}
    (drawing,) = part_figures(
        ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])
    )
    assert "The largest part is other" in drawing.alt
