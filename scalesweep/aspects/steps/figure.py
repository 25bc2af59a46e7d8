"""Figures of steps: where their time goes, and which ranks are slower."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.rank_stats import READING
from scalesweep.analysis.step_account import STEP_WORDS, STEPS
from scalesweep.aspects.steps.breakdown import FirstEpochRow, LedgerRow
from scalesweep.aspects.steps.causes import NOTABLE
from scalesweep.aspects.steps.findings import TIME_WORDS, netted
from scalesweep.aspects.steps.ledgers import (
    Ledger,
    farthest_series,
    largest_points,
    ledgers,
    with_other,
)
from scalesweep.aspects.steps.ranks import RankRow, StragglerRow
from scalesweep.aspects.steps.terms import TERMS
from scalesweep.core.formatting import counted, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import MAX_BARS, Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Bars, Lines
from scalesweep.figures.theme import FAINT, INK, Axis
from scalesweep.table.declared import Estimate

MAX_PANELS, MOST_BARS = 4, 6
FARTHEST, ALL = "ledger", "ledger-all"
_LOOKS = {term.label: term.look for term in TERMS.values()}


def ledger_figures(results: ExperimentResults) -> list[Drawing]:
    """The ledgers of the series that is farthest from its ideal; if there are more, of all too."""
    every = ledgers(results)
    series = farthest_series(results, every)
    drawings = _ledger_figures(results, FARTHEST, series, MOST_BARS)
    return drawings + (_ledger_figures(results, ALL, every) if series != every else [])


def first_epoch_figures(results: ExperimentResults) -> list[Drawing]:
    """The same of the first epoch."""
    return _ledger_figures(results, "ledger-first", ledgers(results, FirstEpochRow))


def _ledger_figures(
    results: ExperimentResults, name: str, every: Sequence[Ledger], most: int = MAX_BARS
) -> list[Drawing]:
    """A bar for each ledger, of at most ``most``: what was there at the base pale, then what each
    term takes more."""
    if not every:
        return []
    whole = [replace(ledger, parts=netted(ledger)) for ledger in evenly(every, most)]
    shown = with_other(whole, NOTABLE)
    factor, unit = _unit(shown)
    names, shared = labels_of(results, [ledger.row for ledger in shown])
    what, of = step_words(shown), ""
    if name == FARTHEST and results.scale in results.axes:
        names = [results.scaled(results.scale_of(ledger.row)) for ledger in shown]
        fixed = [name for name in results.series_labels if name in results.series_names]
        of = f", {words}" if (words := results.named(shown[0].row, fixed)) else ""
    bars = pd.DataFrame(
        {"label": label, "part": TERMS[part].label, "lost": lost, "value": value * factor}
        for label, ledger in zip(names, shown, strict=True)
        for lost in (False, True)
        for part, term in ledger.parts.items()
        if (value := _more(term) if lost else term.ms - _more(term))
    )
    ideals = {
        label: ledger.ideal.ms * factor
        for label, ledger in zip(names, shown, strict=True)
        if ledger.ideal
    }
    line = (f"ideal {what}", ideals) if ideals else None
    full = ", in full colour: lost" if ideals else ""
    panel = Bars(bars, Axis(f"Time of the {what} [{unit}]{full}"), _LOOKS, line=line)
    note = "Means over repeats; at the end of a bar the measured time."
    return drawn(results, name, f"where the time of the {what} goes{of}", note, [panel],
                 len(every) - len(shown), detail="" if of else shared)  # fmt: skip


def _more(term: LedgerRow) -> float:
    return max(term.more or 0.0, 0.0)


def _unit(shown: Sequence[Ledger]) -> tuple[float, str]:
    longest = max(ledger.elapsed.ms for ledger in shown)
    return (1.0, "ms") if longest < 1e3 else (1e-3, "s")


def step_words(shown: Sequence[Ledger]) -> str:
    """What a step of these ledgers is called."""
    forms = {ledger.form for ledger in shown}
    return STEP_WORDS[forms.pop() if len(forms) == 1 else STEPS]


def waterfall_figures(results: ExperimentResults) -> list[Drawing]:
    """From the ideal to the measured step at the largest scale, a panel for each series."""
    last = largest_points(results, ledgers(results))
    if not last:
        return []
    shown = [with_other([each], losses=True)[0] for each in evenly(last, MAX_PANELS)]
    factor, unit = _unit(shown)
    what = step_words(shown)
    axis = Axis(f"Time of the {what} [{unit}]")
    panels = []
    for ledger in shown:
        rows = _steps(ledger, factor)
        title = results.describe(ledger.row) if results.axes else ""
        looks = {**_LOOKS, "Ideal": (FAINT, ""), "Measured": (INK, "")}
        panels.append(Bars(pd.DataFrame(rows), axis, looks, title))
    head = f"from the ideal {what} to the measured one"
    note = "Each bar begins where the one above it ends; lines and brackets: 95 % intervals."
    return drawn(results, "waterfall", head, note, panels, len(last) - len(shown))


def _steps(ledger: Ledger, factor: float) -> list[dict[str, Any]]:
    """The ideal, what each term takes more, what no term was compared in, and what was measured."""
    assert ledger.ideal is not None
    at, whole = ledger.ideal.ms * factor, ledger.elapsed.ms * factor
    rows = [_step("Ideal", 0.0, Estimate(at))]
    for name, term in ledger.parts.items():
        if term.loss is None:
            continue
        loss = term.loss.times(factor)
        rows.append(_step(TERMS[name].label, at, loss, "+" if loss.value >= 0 else ""))
        at += loss.value
    if abs(whole - at) > 1e-6 * whole:  # a term that the reference or this point lacks
        rows.append(_step("Not compared", at, Estimate(whole - at)))
    return [*rows, _step("Measured", 0.0, Estimate(whole))]


def _step(label: str, start: float, size: Estimate, sign: str = "") -> dict[str, Any]:
    ends = {}
    if size.low is not None and size.high is not None:
        ends = {"low": start + size.low, "high": start + size.high}
    text = sign + with_interval(size.value, size.low, size.high)
    return {
        "label": label,
        "part": label,
        "start": start,
        "value": size.value,
        "note": text,
        **ends,
    }


MAX_RANK_FIGURES = 2


def rank_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure for each kind of time, of the point with most ranks (one with stragglers first)."""
    slow = {(*results.point_key(row.row), row.time) for row in results.of(StragglerRow)}
    places: dict[Any, list[RankRow]] = {}
    for row in results.of(RankRow):
        places.setdefault((*results.point_key(row.row), row.time), []).append(row)
    order = sorted(places, key=lambda key: (key in slow, max(row.rank for row in places[key])))
    kinds = {places[key][0].time: key for key in order}
    shown = [key for kind, key in reversed(kinds.items()) if kind not in READING or key in slow]
    return [_rank_figure(results, key, places[key]) for key in shown[:MAX_RANK_FIGURES]]


def _rank_figure(results: ExperimentResults, key: Any, rows: list[RankRow]) -> Drawing:
    """Medians and 5 to 95 % of a time over the ranks, median over the runs."""
    late = {
        int(rank): _who(row)
        for row in results.of(StragglerRow)
        if (*results.point_key(row.row), row.time) == key
        for rank in row.step_ranks.split(", ")
    }
    ranks = pd.DataFrame(
        {"x": row.rank, "low": row.p05, "y": row.median, "high": row.p95} for row in rows
    )
    ranks = ranks.groupby("x").median().reset_index()
    factor, unit = (1e3, "ms") if ranks["high"].max() < 0.1 else (1.0, "s")
    ranks[["low", "y", "high"]] *= factor
    ranks["series"] = ranks["x"].map(late).fillna("median of a rank")
    ranks["style"] = np.where(ranks["x"].isin(late), "marked", "dots")
    time = rows[0].time
    what = TIME_WORDS[time]
    where = results.describe(rows[0].row) if results.axes else counted(len(ranks), "rank")
    label = f"{what[:1].upper()}{what[1:]} [{unit}]"
    middle = {"median of all": float(ranks["y"].median())}
    panel = Lines(ranks, Axis("Rank"), Axis(label, "log", middle))
    note = "Medians of runs, warm-up and first epoch left out; lines and bands: 5 to 95 %."
    return drawn(results, f"ranks-{time}", f"{what} by rank, {where}", note, [panel])[0]


def _who(row: StragglerRow) -> str:
    if row.rank is None:
        return f"host {row.host}, slower"
    return f"rank {row.rank}" + (f", {row.host}" if row.host else "") + ", slower"


FIGURES = (ledger_figures, first_epoch_figures, waterfall_figures, rank_figures)
