"""The table ``medians``: speedups, efficiencies and ratios over three series or more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.factors import fold_axes
from scalesweep.core.formatting import text_of
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.pairwise import (
    choice_groups,
    compared_parameters,
    main_measures,
    reference_value,
)
from scalesweep.tables.points import ExperimentData, Measure, Point

SPEEDUP, EFFICIENCY, RATIO = "speedup", "efficiency", "ratio"
# Of two the median is their mean: it says nothing of what is typical.
FEWEST = 3


@dataclass(frozen=True, kw_only=True)
class Median(DeclaredRow, table="medians"):
    """A quantity over series: each counts once, whatever its repeats.

    Series were chosen by whoever planned them; the quartiles say how far they lie apart, and there
    is no interval for others.
    """

    kind: str = column(
        f"`{SPEEDUP}` and `{EFFICIENCY}` of series over their smallest count, or the `{RATIO}` of "
        "a value to the reference at points that are otherwise equal"
    )
    parameter: str = column("the parameter of a ratio; else what series scale over")
    value: str = column("its value, or the count")
    reference: str = column("what it is held against")
    source: str | None = column("measured, simulated or imported")
    metric: str = column("the metric, of means over repeats")
    phase: str = column("init (first epoch), later, or run (the whole run)")
    series: int = column("how many series, or pairs of points", "1")
    median: float = column("their median", "1")
    lower_quartile: float = column("a quarter of them lies below", "1")
    upper_quartile: float = column("a quarter of them lies above", "1")
    lowest: float = column("the smallest", "1")
    highest: float = column("the largest", "1")


def median_rows(inputs: TableInputs) -> Iterator[Median]:
    """Rows of everything that three series or more have; speedups first."""
    yield from _scaled(inputs)
    data = inputs.data
    leaders = fold_axes(data.experiment)[0]
    for names in compared_parameters(data.experiment):
        reference = reference_value(data.experiment, names)
        groups = list(choice_groups(inputs.points, leaders, names))
        for measure in main_measures(data):
            ratios: dict[tuple[str, str | None], list[float]] = {}
            for group in groups:
                base = _mean(data, group[reference], measure) if reference in group else None
                for value, point in group.items():
                    if value == reference or base is None or base <= 0:
                        continue  # a ratio of what may be negative is no "times"
                    if (mean := _mean(data, point, measure)) is not None and mean >= 0:
                        key = (text_of(value), point.source)
                        ratios.setdefault(key, []).append(mean / base)
            for (value_text, source), values in ratios.items():
                yield from _rows(
                    RATIO, ", ".join(names), value_text, text_of(reference), source, measure, values
                )


def _scaled(inputs: TableInputs) -> Iterator[Median]:
    """Speedup and efficiency by count, of series that begin at the smallest count of all."""
    data = inputs.data
    if data.scale not in data.axes:
        return
    for measure in main_measures(data):
        quantity = data.quantities[measure[0]]
        if quantity.scope != "total" or not quantity.scales:
            continue
        finished = [
            [(point, mean) for point in series if (mean := _mean(data, point, measure)) is not None]
            for series in inputs.series
        ]
        finished = [series for series in finished if len(series) > 1 and series[0][1] > 0]
        counts: dict[tuple[str | None, int, int], list[float]] = {}
        for series in finished:
            first, base = series[0]
            for point, mean in series[1:]:
                key = (point.source, first.values[data.scale], point.values[data.scale])
                counts.setdefault(key, []).append(mean / base)
        smallest = {
            source: min(first for other, first, _ in counts if other == source)
            for source, _, _ in counts
        }
        for (source, base_count, count), speedups in sorted(counts.items(), key=_place):
            if base_count != smallest[source]:
                continue  # an efficiency over another base is another quantity
            words = (data.scale, text_of(count), text_of(base_count), source, measure)
            yield from _rows(SPEEDUP, *words, speedups)
            yield from _rows(EFFICIENCY, *words, [each * base_count / count for each in speedups])


def _place(item: tuple[tuple[str | None, int, int], list[float]]) -> tuple[str, int, int]:
    (source, first, count), _ = item
    return source or "", first, count


def _mean(data: ExperimentData, point: Point, measure: Measure) -> float | None:
    """A point's mean over its runs; None without any."""
    repeats = data.repeats(point, measure)
    return float(repeats.mean()) if repeats.size else None


def _rows(
    kind: str,
    parameter: str,
    value: str,
    reference: str,
    source: str | None,
    measure: Measure,
    values: Sequence[float],
) -> Iterator[Median]:
    """The row of a quantity; none of fewer than three series."""
    if len(values) < FEWEST:
        return
    lowest, lower, median, upper, highest = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    yield Median(
        kind=kind,
        parameter=parameter,
        value=value,
        reference=reference,
        source=source,
        metric=measure[0],
        phase=measure[1],
        series=len(values),
        median=median,
        lower_quartile=lower,
        upper_quartile=upper,
        lowest=lowest,
        highest=highest,
    )


MAKERS = (Maker(Median, median_rows),)
