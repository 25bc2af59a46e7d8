"""The table ``layout_effects``: what one choice changes at a scale, over pairs of layouts.

A pair differs in one parameter alone; what its other choices leave no room for follows
(``analysis.factors.layout_followers``): at 64 ranks, tp 8 for tp 1 takes data-parallel ranks away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.aspects.layouts.study import study_of
from scalesweep.core.formatting import text_of
from scalesweep.core.layouts import LAYOUT
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.comparisons import (
    base_value,
    choice_groups,
    main_measures,
    mean_of,
    mean_ratio,
    values_of,
)
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import Point


@dataclass(frozen=True, kw_only=True)
class LayoutEffect(DeclaredRow, table="layout_effects"):
    """A value of a layout's parameter against its base value at one scale."""

    setting: str = column("what is computed: parameters that say so; empty where they do not vary")
    scale: int = column("ranks, or devices where ranks have several", "1")
    parameter: str = column("the parameter; data-parallel ranks and accumulation follow it")
    value: str = column("its value")
    base: str = column("the value that it is compared with, the same at all scales")
    phase: str = column("init (first epoch), later, or run")
    metric: str = column("the main metric")
    better: str = column("whether higher or lower values of it are better")
    source: str | None = column("measured, simulated or imported")
    pairs: int = column("pairs of layouts that are otherwise equal, both with a result", "1")
    higher: int = column("pairs in which the ratio of the means is above 1", "1")
    median: float = column("median of the ratios", "1")
    quarter: float = column("a quarter of the ratios are below", "1")
    three_quarters: float = column("a quarter of the ratios are above", "1")
    ratio: Estimate = column(
        "geometric mean of the ratios; the interval is over repeats, of these pairs", "1"
    )


def layout_effect_rows(inputs: TableInputs) -> Iterator[LayoutEffect]:
    """A row per thing that is computed, parameter, value, and scale, where there is a pair."""
    data = inputs.data
    study, measures = study_of(data.experiment), main_measures(data)
    if study is None or not measures:
        return
    metric, phase = measure = next((m for m in measures if m[1] == "later"), measures[0])
    better = data.quantities[metric].better
    ran = [point for point in inputs.points if mean_of(data, point, measure) > 0]
    scale = {data.scale, *data.experiment["scale_parameters"]} & {*data.axes}
    for name in study.free:
        if name == LAYOUT:
            continue
        base, pairs = base_value(data.experiment, (name,)), _Pairs()
        for group in choice_groups(ran, [*scale, *study.workload, *study.free], (name,)):
            for value, point in group.items():
                if value != base and base in group:
                    values = point.values
                    place = (point.source, study.setting_text(values), study.scale(values), value)
                    pairs.setdefault(place, []).append((point, group[base]))
        order = values_of(data.experiment, (name,))
        for place in sorted(pairs, key=lambda place: (place[2], order.index(place[3]))):
            of, (source, setting, ranks, value) = pairs[place], place
            ratios = [mean_of(data, x, measure) / mean_of(data, y, measure) for x, y in of]
            quarter, median, three_quarters = np.quantile(ratios, (0.25, 0.5, 0.75)).tolist()
            yield LayoutEffect(
                setting=setting, scale=ranks, parameter=name, value=text_of(value),
                base=text_of(base), phase=phase, metric=metric, better=better, source=source,
                pairs=len(of), higher=sum(ratio > 1 for ratio in ratios), median=median,
                quarter=quarter, three_quarters=three_quarters,
                ratio=mean_ratio(data, of, measure),
            )  # fmt: skip


# By source, what is computed, scale and value the pairs of points.
_Pairs = dict[tuple[str | None, str, int, Any], list[tuple[Point, Point]]]
MAKER = Maker(LayoutEffect, layout_effect_rows)
