"""The table `parts`: where the time of profiled runs goes, by named part of the program.

Parts are named by regular expressions in benchmark.yaml (docs/guide/profiles.md); what no pattern
takes is ``other``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.profile import OTHER
from scalesweep.analysis.stats import Estimate, mean_of
from scalesweep.analysis.types import Floats
from scalesweep.aspects.profiles.functions import FunctionTime, function_rows
from scalesweep.aspects.profiles.timeline import TimelinePhase, phase_rows
from scalesweep.aspects.profiles.traces import (
    CollectiveTime,
    RankLateness,
    TraceOperation,
    TracePart,
    trace_rows,
)
from scalesweep.table.declared import PointRow, column
from scalesweep.tables.bookkeeping import PARTS
from scalesweep.tables.making import Maker, TableInputs, point_columns


@dataclass(frozen=True, kw_only=True)
class PartTime(PointRow, table="parts"):
    """A part of a program at a point; one that the point does not have is 0 of it: a profile lists
    what took time."""

    part: str = column("the part of the program, by the patterns of its benchmark.yaml")
    runs: int = column("runs with a profile", "1")
    seconds: Estimate = column("time of a rank, mean over the repeats", "s")
    share: Estimate | None = column("share of the time of all parts", "1")


def part_rows(inputs: TableInputs) -> Iterator[PartTime]:
    """A row per point and part, of points whose runs have parts."""
    data = inputs.data
    parts_of_row = data.notes(PARTS)
    names = sorted(
        {name for parts in parts_of_row.values() for name in parts}, key=lambda n: (n == OTHER, n)
    )
    for point in inputs.points:
        runs = [parts_of_row[row] for row in point.rows.tolist() if row in parts_of_row]
        totals = np.array([sum(parts.values()) for parts in runs])
        there = totals > 0
        for name in names if runs else ():
            seconds = np.array([parts.get(name, 0.0) for parts in runs])
            yield PartTime(
                **point_columns(point),
                part=name,
                runs=len(runs),
                seconds=_over(seconds),
                share=_over(seconds[there] / totals[there]) if there.any() else None,
            )


def _over(values: Floats) -> Estimate:
    """Mean and its 95 % interval over the repeats."""
    # Nothing in any repeat is no measurement of a spread.
    return mean_of(values) if values.any() else Estimate(0.0)


MAKERS = (
    Maker(PartTime, part_rows),
    Maker(FunctionTime, function_rows),
    Maker(TimelinePhase, phase_rows),
    Maker((TracePart, TraceOperation, CollectiveTime, RankLateness), trace_rows),
)
