"""Layouts at a number of ranks: forecasts of each, and which ones to try and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.prediction.layouts.candidates import layouts_like
from scalesweep.analysis.prediction.layouts.cost import COMPUTE, PIPELINE, REST
from scalesweep.analysis.prediction.layouts.forecast import (
    HEDGED_FROM,
    LEVEL,
    SLOWER,
    LayoutForecast,
    beyond,
    forecast_layouts,
)
from scalesweep.analysis.prediction.layouts.rivals import COST
from scalesweep.analysis.prediction.layouts.runs import Layout
from scalesweep.core.formatting import with_interval
from scalesweep.table.declared import Estimate
from scalesweep.tables.layout_runs import LayoutStudy

IDLE = "idle"
PART_WORDS: Mapping[str, str] = {
    COMPUTE: "compute", PIPELINE: "passing on between stages", REST: "optimiser and rest",
    IDLE: "idle stages", "tp": "exchange of tp", "cp": "exchange of cp", "ep": "exchange of ep",
    "dp": "exchange of dp",
}  # fmt: skip
# Parts of a step that are named.
NAMED = 3


@dataclass(frozen=True, eq=False)
class Expected:
    """A layout at a scale that was not run: the ``rate`` with its interval of ``LEVEL``; whether it
    fits into memory (None: nothing says so); the seconds of a step over those of the fastest
    measured one (``slower``, upper bound); and ``why`` it is where it is."""

    layout: Layout
    rate: Estimate
    fits: bool | None
    slower: float
    why: str


@dataclass(frozen=True, eq=False)
class ForecastAt:
    """The layouts of a study at so many ranks: all that are expected to fit, the fastest first, and
    those to try, the most promising first; or why there are none (``refused``)."""

    study: LayoutStudy
    ranks: int
    layouts: Sequence[Expected] = ()
    trials: Sequence[Expected] = ()
    too_large: int = 0
    notes: Sequence[str] = ()
    refused: str = ""


def forecast_at(
    study: LayoutStudy, ranks: int, trials: int, layouts: Sequence[Layout] | None = None
) -> ForecastAt:
    """What is expected of ``layouts`` (without: of all that so many ranks allow)."""
    measured = study.measured
    if not measured.scales:
        return ForecastAt(study, ranks, refused="no layout ran")
    if why := beyond(measured, ranks):
        return ForecastAt(study, ranks, refused=why)
    forecast = forecast_layouts(measured, study.fits)
    if isinstance(forecast, str):
        return ForecastAt(study, ranks, refused=forecast)
    tried = (measured.ran | measured.too_large).tolist()
    known = {layout for layout, end in zip(measured.layouts, tried, strict=True) if end}
    asked = layouts_like(measured, ranks) if layouts is None else layouts
    every = tuple(dict.fromkeys(layout for layout in asked if layout not in known))
    if not every:
        return ForecastAt(study, ranks, refused="no layout is left to be tried")
    fits = study.fits(measured, every)
    too_large = sum(fit is False for fit in fits)
    if too_large == len(every):
        return ForecastAt(
            study, ranks, too_large=too_large,
            refused=f"none of {too_large:,} layouts is expected to fit into memory",
        )  # fmt: skip
    chosen = forecast.trials(every, fits, trials)
    expected = _expected(study, forecast, every, fits)
    order = sorted(range(len(every)), key=lambda i: -expected[i].rate.value)
    hedge = chosen[-1] if HEDGED_FROM <= trials <= len(chosen) else None
    return ForecastAt(
        study, ranks,
        [expected[i] for i in order if fits[i] is not False],
        [_hedged(expected[i]) if i == hedge else expected[i] for i in chosen],
        too_large, list(_notes(forecast, ranks)),
    )  # fmt: skip


def _expected(
    study: LayoutStudy,
    forecast: LayoutForecast,
    layouts: tuple[Layout, ...],
    fits: Sequence[bool | None],
) -> list[Expected]:
    middle, low, high = (values.tolist() for values in forecast.seconds(layouts))
    fastest = float(study.measured.seconds[study.measured.ran].min())
    return [
        Expected(
            layout,
            Estimate(*(study.rate(layout, of[i]) for of in (middle, high, low))),
            fits[i],
            high[i] / fastest,
            _where_time_goes(forecast.cost.parts(layout)),
        )
        for i, layout in enumerate(layouts)
    ]


def _where_time_goes(parts: Mapping[str, float]) -> str:
    named = [*parts.items()][:NAMED]
    return ", ".join(f"{PART_WORDS[part]} {100 * share:.0f} %" for part, share in named)


def _hedged(expected: Expected) -> Expected:
    why = f"fastest if links between nodes are {SLOWER:g} times slower; {expected.why}"
    return Expected(expected.layout, expected.rate, expected.fits, expected.slower, why)


def _notes(forecast: LayoutForecast, ranks: int) -> Sequence[str]:
    """How the layouts were ordered and how well that did, and what speaks against it."""
    lost = ", ".join(
        f"{100 * rolled.loss:.0f} % at {rolled.ranks:,} ranks"
        for rolled in forecast.rolled[forecast.method]
    )
    by = "the cost model" if forecast.method == COST else f"{forecast.method}, a plain rival"
    notes = [
        f"ordered by {by}: from fewer ranks, its first five lost {lost} against the best layout "
        "there"
    ]
    warning = forecast.warning(ranks)
    return [*notes, warning] if warning else notes


def cells_of(study: LayoutStudy, expected: Expected) -> tuple[str, str, str, str]:
    """A layout as cells of a table: itself, its rate, whether it fits, where its time goes."""
    rate = expected.rate
    fits = {True: "yes", False: "no", None: "not known"}[expected.fits]
    return (
        expected.layout.words,
        f"{with_interval(rate.value, rate.low, rate.high, '')} {study.unit}",
        fits,
        expected.why,
    )


HEAD = ("layout", f"expected, {100 * LEVEL:g} %", "fits", "why")
