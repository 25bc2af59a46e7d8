"""Layouts at a number of ranks: forecasts of each, and which ones to try and why."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.choose_best_of import Options
from scalesweep.analysis.prediction.layouts.candidates import layouts_like
from scalesweep.analysis.prediction.layouts.cost import COMPUTE, PIPELINE, REST
from scalesweep.analysis.prediction.layouts.forecast import (
    LEVEL,
    LayoutForecast,
    beyond,
    forecast_layouts,
)
from scalesweep.analysis.prediction.layouts.rivals import COST
from scalesweep.analysis.prediction.layouts.runs import Layout
from scalesweep.analysis.prediction.layouts.worth import FACTORS
from scalesweep.core.formatting import counted, with_interval
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
TOO_LARGE = "expected not to fit into memory"


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
    """The layouts of a study at so many ranks that are expected to fit, the fastest first, with
    what trying each is worth (``options``, in their order); or why there are none (``refused``).

    ``left``: the others, with why they are not tried.
    """

    study: LayoutStudy
    ranks: int
    layouts: Sequence[Expected] = ()
    options: Options | None = None
    left: Sequence[tuple[Layout, str]] = ()
    notes: Sequence[str] = ()
    refused: str = ""

    @property
    def left_out(self) -> list[str]:
        """How many layouts are left out, by why."""
        counts = Counter(why for _, why in self.left)
        return [f"{counted(n, 'layout')}: {why}" for why, n in counts.most_common()]


def forecast_at(
    study: LayoutStudy, ranks: int, trials: int, layouts: Sequence[Layout] | None = None
) -> ForecastAt:
    """What is expected of ``layouts`` (without: of all that so many ranks allow), of which up to
    ``trials`` may be tried."""
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
    left: list[tuple[Layout, str]] = []
    starting: list[Layout] = []
    for layout in dict.fromkeys(layout for layout in asked if layout not in known):
        if obstacle := study.obstacle(layout):
            left.append((layout, obstacle))
        else:
            starting.append(layout)
    every = tuple(starting)
    if not every:
        if left:
            why = f"none of {len(left):,} layouts would start: {left[0][1]}"
        elif any(layout.ranks == ranks for layout in measured.layouts):
            why = "no layout is left to be tried"
        else:
            why = (
                f"no split of the layouts that ran, and no batch of theirs, divides {ranks:,} ranks"
            )
        return ForecastAt(study, ranks, left=left, refused=why)
    fits = study.fits(measured, every)
    left += [(x, TOO_LARGE) for x, fit in zip(every, fits, strict=True) if fit is False]
    if all(fit is False for fit in fits):
        return ForecastAt(
            study, ranks, left=left,
            refused=f"none of {len(every):,} layouts is expected to fit into memory",
        )  # fmt: skip
    expected = _expected(study, forecast, every, fits)
    order = sorted(
        (i for i, fit in enumerate(fits) if fit is not False),
        key=lambda i: -expected[i].rate.value,
    )
    kept = tuple(every[i] for i in order)
    options = forecast.worth(kept, [fits[i] for i in order], trials)
    notes = list(_notes(forecast, ranks))
    return ForecastAt(study, ranks, [expected[i] for i in order], options, left, notes)


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


def why_tried(options: Options, place: int, others: Sequence[int]) -> str:
    """Why a layout is tried beside others: for what is expected, or for slower links."""
    own = (1 - options.weight) * float(options.chance[place])
    if others and options.added(place, others) > 2 * own:
        before = options.shares[:, list(others)].max(axis=1)
        added = options.shares[:, place] - before
        factor = FACTORS[int(np.argmax(added))]
        return f"ahead of the others if links between nodes are {factor:g} times slower"
    return "among the fastest expected"


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
    if forecast.measured.expected:
        notes.append("the costs of exchange are fitted to probes of the network, too")
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
