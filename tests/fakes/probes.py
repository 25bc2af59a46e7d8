"""Experiments of probes, made up: what their runs leave in the summary, and their tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.bookkeeping import as_text, sweep_of
from tests.fakes.rows import study_of as made_of

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
) -> ExperimentResults:
    """An experiment of points with a sweep's note and seconds for each of their runs.

    ``metrics`` are unit and direction by name, the main one first; ``values`` theirs by name, as
    ``[point][run]``.
    """
    rows = [
        (point, [
            {"_sweep": as_text(sweep_of({"notes": {"sweep": said}},
                                        {"sweep_seconds": np.asarray(seconds)})),
             **{f"{name}_mean_run": values[name][number][repeat] for name in metrics}}
            for repeat, (said, seconds) in enumerate(sweeps)
        ])
        for number, (point, sweeps) in enumerate(points)
    ]  # fmt: skip
    parameters = {name: {"workload": name in workload} for name in points[0][0]}
    main, fixed = next(iter(metrics)), dict(fixed or {"ranks": 1})
    return made_of(rows, metrics, parameters=parameters, main_metric=main, fixed=fixed)
