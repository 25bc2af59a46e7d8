"""The canary as covariate in the table of comparisons, next to the ratio without it."""

import json
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.aspects.machine_check.findings import at_equal_machines
from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.canary_rates import CANARY
from tests.fakes.plan import whole_plan

LAYOUTS = ("a", "b", "c", "d", "e")


def study(
    linked: float, looks: bool = True, lacking: bool = False, axis: str = "layout"
) -> ExperimentResults:
    """Five layouts in five blocks, the second 5 % faster, on a machine that comes and goes."""
    rng = np.random.default_rng(2)
    rows, runs = [], []
    for repeat in range(5):
        for number, layout in enumerate(LAYOUTS):
            run_id, machine = f"r{number}-{repeat}", rng.normal(0, 0.05)
            speed = linked * machine + rng.normal(0, 0.01) + (0.05 if layout == "b" else 0.0)
            before: dict[str, Any] = {
                "compute": ["n", 1e9 * np.exp(rng.normal(0, 0.05))],
                "memory": ["n", 1e9 * np.exp(machine)],
                "read": ["n", 1e9],
            }
            if lacking and repeat == 3:
                del before["memory"]
            text = json.dumps({"before": before, "after": before}) if looks else None
            start = f"2026-01-01T{repeat:02}:{number:02}:00+00:00"
            rows.append(
                {"run_id": run_id, "source": "measured", "samples": pd.NA, "started": start,
                 "repeat": repeat, "warnings": None, "speed_mean_run": 100 * np.exp(speed),
                 CANARY: text}
            )  # fmt: skip
            point = {axis: layout, "ranks": 1}
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
    entry = {"axes": [axis], "runs": runs, "parameters": {axis: {"default": "a"}}}
    plan = whole_plan({"experiments": [{**entry, "main_metric": "speed"}]})
    summary = pd.DataFrame(rows)
    meaning = {"unit": "1/s", "better": "higher", "scope": "total"}
    summary.attrs["metrics"] = {"b": {"speed": meaning}}
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])


def test_both_ratios_are_in_the_table_and_said() -> None:
    found = study(1.0)
    rows = {row["value"]: row for row in found.rows("comparisons")}
    assert {row["canary"] for row in rows.values()} == {"memory"}
    for row in rows.values():
        without, with_it = (np.log(row[f"{k}high"] / row[f"{k}low"]) for k in ("", "canary_"))
        assert with_it < 0.5 * without
        assert "blocks" in row["interval_from"]
    assert rows["b"]["canary_low"] < np.exp(0.05) < rows["b"]["canary_high"]
    (note,) = at_equal_machines(found)
    assert note.level == "note" and "What the machine did before the runs (copies)" in note.text
    assert "b over a 1.0" in note.text and note.text.count(" instead of ") == 4
    assert note.text.endswith("All other sentences, figures and intervals are without.")


def test_nothing_is_adjusted_where_the_canary_explains_nothing_or_is_missing() -> None:
    # The canaries of two benchmarks may have had two Pythons: no ratio at equal machines.
    two = study(1.0, axis="benchmark")
    for found in (study(0.0), study(1.0, looks=False), study(1.0, lacking=True), two):
        assert "canary" not in found.rows("comparisons")[0]
        assert at_equal_machines(found) == []
