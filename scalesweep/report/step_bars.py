"""The step on the first screen: a stacked bar for each scale, ideal and losses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.step_account import EPOCHS
from scalesweep.aspects.steps.efficiency import LABELS
from scalesweep.aspects.steps.ledgers import Ledger, ledgers
from scalesweep.aspects.steps.looks import LOOKS
from scalesweep.aspects.steps.losses import netted
from scalesweep.core.formatting import number
from scalesweep.experiment.results import ExperimentResults

MOST_BARS = 6
NOTABLE = 0.02  # of a step: what is less has no number, and no name below the bars
_NUMBERED = 0.06  # share of the longest bar with room for a number
_CHARACTERS = 60  # of the longest bar


@dataclass(frozen=True)
class Segment:
    """A part of a bar: ``share`` of the longest one in percent, and what it says."""

    term: str
    lost: bool
    share: float
    name: str  # if there is room for it
    text: str
    title: str


@dataclass(frozen=True)
class Bar:
    """A scale: its parts, the measured step, and where its ideal ends, in percent."""

    label: str
    segments: Sequence[Segment]
    measured: str
    ideal: float | None


@dataclass(frozen=True)
class StepBars:
    """The bars of a series; ``sum`` is that of the last one, ``legend`` its (term, name) pairs."""

    what: str
    unit: str
    where: str
    bars: Sequence[Bar]
    sum: str
    legend: Sequence[tuple[str, str]]
    colours: Mapping[str, str]


@dataclass(frozen=True)
class Loss:
    """The term of a point that takes most more than in the ideal step, in ms."""

    name: str
    value: float
    share: float

    @property
    def text(self) -> str:
        """``load imbalance 39 %``."""
        return f"{self.name.lower()} {100 * self.share:.0f} %"


def farthest_series(results: ExperimentResults) -> list[Ledger]:
    """The accounts of the series that is farthest from its ideal at its largest scale."""
    series: dict[tuple[object, ...], list[Ledger]] = {}
    for ledger in ledgers(results):
        key = (*results.key(ledger.row, results.series_names), ledger.row["source"])
        series.setdefault(key, []).append(ledger)

    def behind(of: list[Ledger]) -> float:
        return of[-1].elapsed.ms / of[-1].ideal.ms if of[-1].ideal else 0.0

    return max(series.values(), key=behind, default=[])


def main_loss(series: Sequence[Ledger]) -> Loss | None:
    """The largest loss at the largest scale; None if nothing is known or lost there."""
    if not series or series[-1].ideal is None:
        return None
    last = series[-1]
    losses = {name: term.more for name, term in netted(last).items() if term.more is not None}
    term = max(losses, key=lambda name: losses[name], default=None)
    if term is None or losses[term] < NOTABLE * last.elapsed.ms:
        return None
    return Loss(LABELS[term], losses[term], losses[term] / last.elapsed.ms)


def step_bars(results: ExperimentResults, series: Sequence[Ledger]) -> StepBars | None:
    """The bars of a series of accounts; None if there is none."""
    if not series:
        return None
    last = len(series) - 1
    places = {round(place * last / max(MOST_BARS - 1, 1)) for place in range(MOST_BARS)}
    shown = [series[place] for place in sorted(places)] if last >= MOST_BARS else list(series)
    longest = max(ledger.elapsed.ms for ledger in shown)
    factor, unit = (1.0, "ms") if longest < 1e3 else (1e-3, "s")
    bars = [_bar(results, ledger, longest, factor) for ledger in shown]
    end = shown[-1]
    terms = [name for name in end.parts if end.parts[name].ms > NOTABLE * end.elapsed.ms]
    fixed = [name for name in results.series_labels if name in results.series_names]
    return StepBars(
        "epoch" if end.form == EPOCHS else "step",
        unit,
        results.named(end.row, fixed),
        bars,
        _sum(end, factor, unit),
        [(name, LABELS[name]) for name in terms],
        {name: LOOKS[name][0] for ledger in shown for name in ledger.parts},
    )


def _bar(results: ExperimentResults, ledger: Ledger, longest: float, factor: float) -> Bar:
    """What was there at the base first, then what each term takes more."""
    segments = []
    for lost in (False, True):
        for name, term in netted(ledger).items():
            more = max(term.more or 0.0, 0.0)
            value = more if lost else term.ms - more
            share = value / longest
            if share > 0:
                text, label = number(value * factor, 3), LABELS[name]
                title = f"{label}{', more than at the smallest scale' if lost else ''}: {text}"
                named = label if len(f"{label} {text}") < share * _CHARACTERS else ""
                text = text if share > _NUMBERED else ""
                segments.append(Segment(name, lost, 100 * share, named, text, title))
    ideal = 100 * ledger.ideal.ms / longest if ledger.ideal else None
    label = (
        results.scaled(results.scale_of(ledger.row))
        if results.scale in results.axes
        else results.describe(ledger.row)
    )
    return Bar(label, segments, number(ledger.elapsed.ms * factor), ideal)


def _sum(ledger: Ledger, factor: float, unit: str) -> str:
    """``59 ideal + 40 load imbalance + 1.6 other = 101 ms``."""
    whole = ledger.elapsed.ms
    if ledger.ideal is None:
        return ""
    losses = {LABELS[name].lower(): term.more or 0.0 for name, term in netted(ledger).items()}
    named = {name: loss for name, loss in losses.items() if abs(loss) > NOTABLE * whole}
    rest = whole - ledger.ideal.ms - sum(named.values())
    if abs(rest) > 0.005 * whole:
        named["other"] = rest
    parts = [
        f"{'−' if loss < 0 else '+'} {number(abs(loss) * factor)} {name}"
        for name, loss in sorted(named.items(), key=lambda item: (item[0] == "other", -item[1]))
    ]
    ideal = f"{number(ledger.ideal.ms * factor)} ideal"
    return " ".join([ideal, *parts, f"= {number(whole * factor)} {unit}"]) if parts else ""
