"""From the ideal step to the measured one, loss by loss, at the largest scale of each series."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from scalesweep.aspects.breakdown.bars import LOOKS, step_words
from scalesweep.aspects.breakdown.efficiency import LABELS
from scalesweep.aspects.breakdown.ledgers import Ledger, Term, ledgers, with_other
from scalesweep.core.formatting import counted, percent, shorten, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.style import (
    FAINT,
    INK,
    WIDE,
    Drawing,
    caption,
    evenly,
    heading,
    left_out_words,
    points_shown,
    tick,
)

MAX_PANELS = 4
LONG = 5e3  # ms from which an axis is in s
MOST_BEYOND = 0.5  # of an interval beyond the bars, over all that the bars cover
_ROW, _PANEL = 0.26, 0.62  # inches of a bar, and of what a panel has besides


@dataclass(frozen=True)
class _Bar:
    """A bar from ``begin`` to ``end``, in ms; ``term`` holds the interval of its length."""

    label: str
    begin: float
    end: float
    colour: str
    hatch: str
    text: str
    term: Term | None = None


def waterfall_figures(results: ExperimentResults) -> list[Drawing]:
    """One figure with a panel for each series that has an ideal, at its largest scale."""
    last: dict[tuple[object, ...], Ledger] = {}
    for ledger in ledgers(results):
        if ledger.ideal is not None and ledger.elapsed.loss is not None:
            last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    if not last:
        return []
    shown = [with_other([each])[0] for each in evenly(list(last.values()), MAX_PANELS)]
    longest = max(ledger.elapsed.value for ledger in shown)
    factor, unit = (1.0, "ms") if longest < LONG else (1e-3, "s")
    bars = [_bars(ledger, factor, unit) for ledger in shown]
    what = step_words(shown)
    head = f"{results.name}: from the ideal {what.split()[1]} to the measured one{results.mark}"
    rows = [len(steps) for steps in bars]
    figure = Figure(figsize=(WIDE, 0.35 + _ROW * sum(rows) + _PANEL * len(rows)))
    heading(figure, head)
    panels = figure.subplots(len(shown), squeeze=False, height_ratios=rows)[:, 0]
    for ax, ledger, steps in zip(panels, shown, bars, strict=True):
        _draw(ax, steps, factor)
        if results.axes:
            ax.set_title(
                shorten(results.describe(ledger.row), 100), fontsize=8.5, fontweight="normal"
            )
    panels[-1].set_xlabel(f"Time of {what} [{unit}]")
    text = caption(
        results, [ledger.row for ledger in shown], [],
        "Each bar begins where the one above it ends; numbers are means over repeats with 95 % "
        "intervals. A negative number is time saved against the ideal.",
        left_out_words(len(last) - len(shown)),
    )  # fmt: skip
    reached = [
        percent(ledger.ideal.value / ledger.elapsed.value) for ledger in shown if ledger.ideal
    ]
    alt = f"{head}: {counted(len(shown), 'panel')}. Of the ideal are reached {', '.join(reached)}."
    shows = points_shown(results, [ledger.row for ledger in shown])
    return [Drawing("waterfall", head, text, alt, figure, shows)]


def _bars(ledger: Ledger, factor: float, unit: str) -> list[_Bar]:
    """The ideal, what each term takes more, what no term was compared in, and what was measured."""
    assert ledger.ideal is not None
    ideal = ledger.ideal.value
    bars = [_Bar("Ideal", 0.0, ideal, FAINT, "", f"{with_interval(ideal * factor, None, None)}")]
    at = ideal
    for name, term in ledger.parts.items():
        if term.loss is None:
            continue
        colour, hatch = LOOKS[name]
        # What rounding leaves of nothing is nothing.
        text = _text(term, factor) if abs(term.loss) > 1e-9 * ideal else "0"
        bars.append(_Bar(LABELS[name], at, at + term.loss, colour, hatch, text, term))
        at += term.loss
    whole = ledger.elapsed.value
    if abs(whole - at) > 1e-6 * whole:  # a term that the reference or this point lacks
        bars.append(
            _Bar("Not compared: missing at a scale", at, whole, "#ffffff", "xxxx",
                 with_interval((whole - at) * factor, None, None))
        )  # fmt: skip
    text = f"{with_interval(whole * factor, None, None)} {unit}"
    return [*bars, _Bar("Measured", 0.0, whole, INK, "", text)]


def _text(term: Term, factor: float) -> str:
    """``+12 [8, 16]``: what a term takes more, with its interval."""
    assert term.loss is not None
    low, high = (None if v is None else v * factor for v in (term.loss_low, term.loss_high))
    return ("+" if term.loss >= 0 else "") + with_interval(term.loss * factor, low, high)


def _draw(ax: Axes, bars: Sequence[_Bar], factor: float) -> None:
    """A bar per row; the numbers are in a column of their own, so that none overlaps a bar."""
    edges: list[float] = [0.0]
    ends: list[float] = []
    for place, bar in enumerate(bars):
        low, high = sorted((bar.begin * factor, bar.end * factor))
        edges += [low, high]
        ax.barh(
            place, high - low, left=low, height=0.62, color=bar.colour, hatch=bar.hatch,
            edgecolor=FAINT if bar.hatch else "none", linewidth=0.4,
        )  # fmt: skip
        if (
            bar.term is not None
            and bar.term.loss_low is not None
            and bar.term.loss_high is not None
        ):
            span = [(bar.begin + v) * factor for v in (bar.term.loss_low, bar.term.loss_high)]
            ax.plot(span, [place, place], color=INK, linewidth=1.1)
            ends += span
        if place + 1 < len(bars):
            ax.plot([bar.end * factor] * 2, [place - 0.31, place + 1.31], color=FAINT, lw=0.6)
        ax.text(1.01, place, bar.text, transform=ax.get_yaxis_transform(), va="center", fontsize=8)
    ax.set_yticks(range(len(bars)), [bar.label for bar in bars])
    ax.set_ylim(len(bars) - 0.45, -0.55)
    room = (max(edges) - min(edges)) or 1.0
    # Intervals are shown to their ends, unless the bars would become too short to be read.
    left = max(min(*edges, *ends), min(edges) - MOST_BEYOND * room)
    right = min(max(*edges, *ends), max(edges) + MOST_BEYOND * room)
    ax.set_xlim(left - (0.03 * room if left < 0 else 0), right + 0.05 * room)
    ax.grid(axis="y", visible=False)
    ax.xaxis.set_major_formatter(FuncFormatter(tick))
