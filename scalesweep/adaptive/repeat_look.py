"""Looks at points that are measured until they are precise: who gets another repeat.

No pandas: Snakemake waits for a look after each block of repeats.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.adaptive.repeats import KeptLook, RepeatedPoint
from scalesweep.analysis.metrics import EPOCH_PHASES, column
from scalesweep.analysis.repeat_rule import MORE, WAITING, Look
from scalesweep.analysis.sequential import look_at
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.tables.summary import read_rows
from scalesweep.tables.summary_cache import Row


def look_at_point(point: RepeatedPoint, folder: Path) -> KeptLook:
    """What the finished repeats of a point say, of the metric that its experiment is about."""
    rule, asked = point.rule, point.asked
    done = [
        folder / run.run_id / RECORD
        for run, state in zip(point.runs, point.states, strict=True)
        if state.status == Status.DONE
    ]
    # One that is damaged, or of no use, has no value: the inventory says so.
    rows = [row for row in read_rows(done) if isinstance(row, Row)]
    metric, values = _values(rows, rule.metric, _preferred(point))
    seen = look_at(values, asked, rule.least, rule.most, rule.until)
    if not all(state.settled for state in point.states[:asked]):
        seen = Look(WAITING, seen.width, asked)
    asked += seen.state == MORE
    width = seen.width if math.isfinite(seen.width) else None
    return KeptLook(point.seen, asked, seen.state, width, seen.expected, metric)


def _preferred(point: RepeatedPoint) -> list[str]:
    """Metrics in the order in which one is chosen (as ``experiment.results``)."""
    main = point.experiment.main_metric
    return [*([main] if main else []), "total_throughput", *point.experiment.benchmark.metrics]


def _values(
    rows: Sequence[Row], named: str | None, preferred: Sequence[str]
) -> tuple[str, list[float]]:
    """A metric, and its finite values: the one that is named, or the first that rows have."""
    numbers: list[Mapping[str, float]] = [{**row.epochs, **row.plain} for row in rows]
    others = sorted({name for row in rows for name in row.meanings})
    for metric in [named] if named else [*preferred, *others]:
        # As in findings: epochs after the first one, where there are several.
        for phase in (*reversed(EPOCH_PHASES), "run"):
            name = column(metric, "mean", phase)
            values = [value for row in numbers if math.isfinite(value := row.get(name, math.nan))]
            if values:
                return metric, values
    return named or "", []
