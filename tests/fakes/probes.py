"""Experiments of probes, made up: what their runs leave in the summary, and their tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text, sweep_of
from tests.fakes.plan import whole_plan

Array = Any


def note(values: Sequence[Any], amounts: Sequence[float], **more: Any) -> dict[str, Any]:
    """What a record's notes say of a sweep."""
    return {
        "by": "size", "unit": None, "amount_unit": "bytes", "values": list(values),
        "amounts": list(amounts), "calls": [1] * len(values), "left_out": {}, **more,
    }  # fmt: skip


def study_of(
    points: Sequence[tuple[dict[str, Any], Sequence[tuple[dict[str, Any], Array]]]],
    metrics: Mapping[str, tuple[str, str]],
    values: Mapping[str, Sequence[Sequence[float]]],
    workload: Sequence[str] = (),
    fixed: Mapping[str, Any] | None = None,
    source: str = "measured",
) -> ExperimentResults:
    """An experiment of points with a sweep's note and seconds for each of their runs.

    ``metrics`` are unit and direction by name, the main one first; ``values`` theirs by name, as
    ``[point][run]``.
    """
    axes = list(points[0][0])
    runs, rows = [], []
    for number, (point, sweeps) in enumerate(points):
        for repeat, (said, seconds) in enumerate(sweeps):
            run_id = f"p-{number}-{repeat}"
            runs.append({"run_id": run_id, "repeat": repeat, "point": point, "status": "done"})
            record = {"notes": {"sweep": said}}
            rows.append(
                {"run_id": run_id, "source": source, "started": "2026-01-01T00:00:00+00:00",
                 "benchmark": "b", "repeat": repeat, "samples": None, "warnings": None,
                 "_sweep": as_text(sweep_of(record, {"sweep_seconds": np.asarray(seconds)})),
                 **{f"{name}_mean_run": values[name][number][repeat] for name in metrics}}
            )  # fmt: skip
    parameters = {name: {"workload": name in workload} for name in axes}
    entry = {
        "name": "e", "axes": axes, "runs": runs, "parameters": parameters,
        "main_metric": next(iter(metrics)), "fixed": dict(fixed or {"ranks": 1}),
    }  # fmt: skip
    plan = whole_plan({"experiments": [entry]})
    summary = pd.DataFrame(rows)
    summary.attrs["metrics"] = {
        "b": {
            name: {"unit": unit, "better": better, "scope": "total"}
            for name, (unit, better) in metrics.items()
        }
    }
    return ExperimentResults(plan["experiments"][0], make_tables(summary, plan)["e"])
