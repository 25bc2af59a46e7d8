"""Ratios new over base at each point: one row a point, metric and phase, with its verdict.

A verdict goes by the plain 95 % interval of its own ratio. As many are looked at together, each
also has a p value corrected for that. What the page says first of an experiment is corrected for
all that it might have said.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from scalesweep.analysis.flop_conventions import mixed_conventions, same_share
from scalesweep.analysis.metrics import (
    EPOCH_METRICS,
    EPOCH_PHASES,
    NEVER,
    Quantity,
    compared,
    quantities_of,
)
from scalesweep.analysis.multiple import adjusted_p, holm_p
from scalesweep.analysis.types import Floats
from scalesweep.compare.sides import Joined, Pair, Side
from scalesweep.judge.change import CHANGED, INCONCLUSIVE, Change, estimates, welch

ONLY_BASE, ONLY_NEW = "only base", "only new"
# In at most so many comparisons any change that is said first is a false one: Welch's t of few
# repeats is a bit liberal far out.
LEVEL = 0.04
_PHASES = ("later", "run", "init")  # the first there is of a main metric is said first


@dataclass(frozen=True)
class Ratio:
    """A metric of a point in one phase on both sides, or one.

    ``base``, ``new``: mean with its 95 % interval; ``repeats`` of both; ``first``: whether the page
    may say it first; ``family``: p after Holm among all of its experiment that it may say first.
    """

    pair: Pair
    metric: str
    phase: str
    quantity: Quantity
    main: bool
    base: Floats
    new: Floats
    repeats: tuple[int, int]
    change: Change
    first: bool = False
    family: float = math.nan

    @property
    def experiment(self) -> str:
        """That its pair is listed under."""
        return self.pair.experiment

    @property
    def stands(self) -> bool:
        """Whether it is a change, and remains one among all that is said first."""
        return self.change.verdict in CHANGED and self.family <= LEVEL


def ratios(joined: Joined, base: Side, new: Side) -> tuple[list[Ratio], list[str]]:
    """Every metric and phase of every pair, by experiment, its main metric first; and, in words,
    metrics that mean different things on the two sides, which are not compared."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in (*joined.both, *joined.alone):
        groups.setdefault((pair.experiment, pair.point.kind[0]), []).append(pair)
    rows: list[Ratio] = []
    unlike: dict[str, None] = {}
    for (experiment, benchmark), pairs in groups.items():
        quantities, words = _quantities(benchmark, base, new)
        unlike.update(dict.fromkeys(words))
        rows += _rows(experiment, benchmark, pairs, quantities, (base, new))
    return _adjusted(_marked(rows)), list(unlike)


def _quantities(benchmark: str, base: Side, new: Side) -> tuple[dict[str, Quantity], list[str]]:
    """The metrics that mean the same on both sides, and those that do not in words."""
    mine, theirs = (quantities_of(side.summary, benchmark) for side in (base, new))
    quantities, unlike = {**theirs, **mine}, []
    for name in mine.keys() & theirs.keys():
        both = mine[name], theirs[name]
        meanings = [(q.unit, q.better, q.scope, q.formula) for q in both]
        if meanings[0] != meanings[1]:
            del quantities[name]
            same = meanings[0][:3] == meanings[1][:3]
            words = [q.formula if same else f"{q.unit}, {q.better} is better" for q in both]
            unlike.append(f"{benchmark}: {name} ({' and '.join(words)})")
    for name, other in product(mine.keys() - theirs, theirs.keys() - mine):
        if same_share(name, other) and (why := mixed_conventions((name, other))):
            unlike.append(f"{benchmark}: {why}")
    return quantities, unlike


def _rows(
    experiment: str,
    benchmark: str,
    pairs: Sequence[Pair],
    quantities: dict[str, Quantity],
    sides: tuple[Side, Side],
) -> Iterator[Ratio]:
    entries = [e for side in sides for e in side.experiments if e["benchmark"] == benchmark]
    entries.sort(key=lambda entry: entry["name"] != experiment)
    wanted = [str(e["main_metric"]) for e in entries if e["main_metric"]][:1]
    wanted += ["total_throughput", *(name for e in entries for name in e["metrics"])]
    declared = {k: v for entry in entries for k, v in entry.get("compare", {}).items()}
    order = sorted(quantities, key=lambda n: wanted.index(n) if n in wanted else len(wanted))
    main = ""
    for metric in order:
        # A program may report one of our own metrics itself, as one number.
        for phase in (*EPOCH_PHASES, "run") if metric in EPOCH_METRICS else ("run",):
            values = [
                [side.numbers(metric, phase, point.rows) if point else np.empty(0)
                 for side, point in zip(sides, (pair.base, pair.new), strict=True)]
                for pair in pairs
            ]  # fmt: skip
            if not any(side.size for both in values for side in both):
                continue
            main = main or metric
            never = compared(metric, declared, main) == NEVER
            for pair, (mine, theirs) in zip(pairs, values, strict=True):
                if mine.size or theirs.size:
                    change = _change(mine, theirs, quantities[metric].better, never)
                    yield Ratio(
                        pair, metric, phase, quantities[metric], metric == main,
                        _estimate(mine), _estimate(theirs), (mine.size, theirs.size), change,
                    )  # fmt: skip


def _estimate(values: Floats) -> Floats:
    """Mean and ends of its 95 % interval, NaN if not known."""
    known: Floats = estimates([values])[:, 0] if values.size else np.full(3, np.nan)
    return known


def _change(base: Floats, new: Floats, better: str, never: bool) -> Change:
    if not base.size or not new.size:
        return Change(ONLY_BASE if base.size else ONLY_NEW)
    if never:
        why = "not compared: of runs that neither trained to a target nor a fixed amount"
        return Change(INCONCLUSIVE, why)
    return welch(base, new, better)


def _marked(rows: Sequence[Ratio]) -> list[Ratio]:
    """With those that are said first: of each main metric the phase of later epochs, else the
    first there is."""
    phases: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        if row.main:
            phases.setdefault((row.experiment, row.metric), set()).add(row.phase)
    chosen = {key: min(there, key=_PHASES.index) for key, there in phases.items()}
    return [
        replace(row, first=row.main and chosen[row.experiment, row.metric] == row.phase)
        for row in rows
    ]


def _adjusted(rows: Sequence[Ratio]) -> list[Ratio]:
    """With corrected p values: among all points of a benchmark, metric and phase (Benjamini and
    Hochberg), and among all that is said first of an experiment (Holm)."""
    adjusted = [math.nan] * len(rows)
    family = [math.nan] * len(rows)
    lists: dict[tuple[str, ...], list[int]] = {}
    families: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        if not math.isnan(row.change.p):
            lists.setdefault((row.pair.point.kind[0], row.metric, row.phase), []).append(place)
            if row.first:
                families.setdefault(row.experiment, []).append(place)
    for places in lists.values():
        for place, p in zip(places, adjusted_p([rows[n].change.p for n in places]), strict=True):
            adjusted[place] = p
    for places in families.values():
        for place, p in zip(places, holm_p([rows[n].change.p for n in places]), strict=True):
            family[place] = p
    return [
        replace(row, change=replace(row.change, adjusted=adjusted[n]), family=family[n])
        for n, row in enumerate(rows)
    ]


def by_claim(rows: Iterable[Ratio]) -> list[list[Ratio]]:
    """The ratios grouped by experiment, metric and phase."""
    groups: dict[tuple[str, str, str], list[Ratio]] = {}
    for row in rows:
        groups.setdefault((row.experiment, row.metric, row.phase), []).append(row)
    return list(groups.values())
