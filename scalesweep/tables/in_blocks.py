"""The column `in_blocks` of tables: which intervals come from the blocks that runs started in."""

from collections.abc import Sequence
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.analysis.stats import Interval
from scalesweep.analysis.table_io import typed_values
from scalesweep.core.formatting import number
from scalesweep.tables.points import ExperimentData, Measure, Point, place_of


def pooled_intervals(
    data: ExperimentData, points: Sequence[Point], measure: Measure
) -> dict[int, Interval]:
    """By place, intervals of means that come from the blocks that the repeats ran in."""
    known = data.pooled(measure)
    rows = [place_of(point) if point.rows.size else None for point in points]
    return {place: known[row] for place, row in enumerate(rows) if row is not None and row in known}


def pooled_words(data: ExperimentData, points: Sequence[Point]) -> list[list[str]]:
    """Of each point the means whose interval comes from blocks, with its degrees of freedom."""
    words: list[list[str]] = [[] for _ in points]
    for measure in data.measures:
        for place, span in pooled_intervals(data, points, measure).items():
            words[place].append(blocks_word(column(measure[0], "mean", measure[1]), span.degrees))
    return words


def blocks_word(name: str, degrees: float) -> str:
    """The column of a mean or ratio with the degrees of freedom of its interval."""
    return f"{name}: {number(degrees)}"


def in_blocks(words: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The column that names intervals from blocks, where there are any."""
    values = typed_values(["; ".join(parts) or None for parts in words])
    return {"in_blocks": values} if any(words) else {}
