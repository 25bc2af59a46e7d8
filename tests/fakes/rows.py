"""An experiment whose runs are given by what their rows of the summary hold, with its tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.machine import Machine
from tests.fakes.plan import whole_plan


def study_of(
    points: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
    metrics: Mapping[str, tuple[str, ...]] | None = None,
    in_blocks: bool = False,
    machine: Machine | None = None,
    **entry: Any,
) -> ExperimentResults:
    """Points, each with the rows of its repeats, or pending without any; ``metrics``: unit and
    direction by name, and ``rank`` if it is of a rank.

    The runs began at once, or in blocks of one repeat of each; ``entry`` is of the plan.
    """
    runs, rows = [], []
    for number, (point, repeats) in enumerate(points):
        if not repeats:
            runs.append({"run_id": f"new-{number}", "point": point, "status": "new"})
        for repeat, row in enumerate(repeats):
            run_id = f"r{point.get('ranks', number)}-{repeat}-{number}"
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
            began = f"2026-01-01T00:{repeat:02}:{number:02}+00:00" if in_blocks else "2026-01-01"
            plain = {"source": "measured", "started": began, "samples": None, "warnings": None}
            rows.append({"run_id": run_id, "benchmark": "b", "repeat": repeat, **plain, **row})
    axes = list(points[0][0])
    plan = whole_plan({"experiments": [{"name": "e", "axes": axes, "runs": runs, **entry}]})
    summary = pd.DataFrame(rows)
    summary.attrs["metrics"] = {
        "b": {
            name: {"unit": unit, "better": better, "scope": scope[0] if scope else "total"}
            for name, (unit, better, *scope) in (metrics or {}).items()
        }
    }
    return ExperimentResults(
        plan["experiments"][0], make_tables(summary, plan, machine=machine)["e"]
    )
