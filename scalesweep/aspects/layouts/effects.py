"""The table ``layout_effects``: what one choice changes at a scale, over pairs of layouts.

A pair differs in one parameter alone; what its other choices leave no room for follows
(``analysis.factors.layout_followers``): at 64 ranks, tp 8 for tp 1 takes data-parallel ranks away.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.aspects.layouts.study import LayoutStudy, study_of
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import text_of
from scalesweep.core.layouts import LAYOUT
from scalesweep.table.declared import DeclaredRow, Estimate, column
from scalesweep.tables.comparisons import base_value, main_measures, mean_of, mean_ratio, values_of
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import Point

# By what is computed, scale and all other choices: the points by the value of a parameter.
_Groups = Mapping[tuple[str, int, str], Mapping[Any, Point]]


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
    study = study_of(data.experiment)
    measures = main_measures(data)
    if study is None or not measures:
        return
    metric, phase = measure = next((m for m in measures if m[1] == "later"), measures[0])
    sources = dict.fromkeys(point.source for point in inputs.points if point.source)
    for source in sources:
        ran = [
            point
            for point in inputs.points
            if point.source == source and mean_of(data, point, measure) > 0
        ]
        for name in study.free:
            if name == LAYOUT:
                continue
            base = base_value(data.experiment, (name,))
            groups = _groups(study, ran, name)
            places = dict.fromkeys(key[:2] for key in groups)
            for setting, scale in sorted(places, key=lambda place: place[1]):
                of = [group for key, group in groups.items() if key[:2] == (setting, scale)]
                for value in values_of(data.experiment, (name,)):
                    pairs = [(g[value], g[base]) for g in of if value in g and base in g]
                    if value == base or not pairs:
                        continue
                    ratios = [
                        mean_of(data, top, measure) / mean_of(data, bottom, measure)
                        for top, bottom in pairs
                    ]
                    quarter, median, three_quarters = np.quantile(ratios, (0.25, 0.5, 0.75))
                    yield LayoutEffect(
                        setting=setting, scale=scale, parameter=name, value=text_of(value),
                        base=text_of(base), phase=phase, metric=metric,
                        better=data.quantities[metric].better, source=source, pairs=len(pairs),
                        higher=sum(ratio > 1 for ratio in ratios), median=float(median),
                        quarter=float(quarter), three_quarters=float(three_quarters),
                        ratio=Estimate.of(*mean_ratio(data, pairs, measure)[:3]),
                    )  # fmt: skip


def _groups(study: LayoutStudy, points: list[Point], name: str) -> _Groups:
    groups: dict[tuple[str, int, str], dict[Any, Point]] = {}
    for point in points:
        values = point.values
        rest = canonical_json([values[other] for other in study.free if other != name])
        key = (study.setting_text(values), study.scale(values), rest)
        groups.setdefault(key, {})[values[name]] = point
    return groups


MAKER = Maker(LayoutEffect, layout_effect_rows)
