"""Ratios new over base at each point: one frame, a row a point, metric and phase, with its verdict.

A verdict goes by the plain 95 % interval of its own ratio. As many are looked at together, each
also has a p value corrected for that. What the page says first of an experiment is corrected for
all that it might have said.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

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
CLAIM = ["experiment", "metric", "phase"]


def ratios(joined: Joined, base: Side, new: Side) -> tuple[pd.DataFrame, list[str]]:
    """Every metric and phase of every pair, by experiment, its main metric first; and, in words,
    metrics that mean different things on the two sides, which are not compared.

    The frame has ``pair``, ``change`` (judge.Change), ``quantity``; ``first``: whether the page may
    say it first; ``stands``: a change that remains one among all that is said first.
    """
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in (*joined.both, *joined.alone):
        groups.setdefault((pair.experiment, pair.point.kind[0]), []).append(pair)
    rows: list[list[Any]] = []
    unlike: dict[str, None] = {}
    for (experiment, benchmark), pairs in groups.items():
        quantities, words = _quantities(benchmark, base, new)
        unlike.update(dict.fromkeys(words))
        rows += _rows(experiment, benchmark, pairs, quantities, (base, new))
    return _adjusted(pd.DataFrame(rows, columns=_COLUMNS)), list(unlike)


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


_COLUMNS = [
    *("experiment", "benchmark", "pair", "quantity", "metric", "phase", "main", "change"),
    *("base_repeats", "base_mean", "base_low", "base_high"),
    *("new_repeats", "new_mean", "new_low", "new_high"),
]


def _rows(
    experiment: str,
    benchmark: str,
    pairs: Sequence[Pair],
    quantities: dict[str, Quantity],
    sides: tuple[Side, Side],
) -> Iterator[list[Any]]:
    entries = [e for side in sides for e in side.experiments if e["benchmark"] == benchmark]
    entries.sort(key=lambda entry: entry["name"] != experiment)
    wanted = [str(e["main_metric"]) for e in entries if e["main_metric"]][:1]
    wanted += ["total_throughput", *(name for e in entries for name in e["metrics"])]
    declared = {k: v for entry in entries for k, v in entry.get("compare", {}).items()}
    main = ""
    for metric in sorted(quantities, key=lambda n: (*wanted, n).index(n)):
        # A program may report one of our own metrics itself, as one number.
        for phase in (*EPOCH_PHASES, "run") if metric in EPOCH_METRICS else ("run",):
            values = [
                [side.numbers(metric, phase, point.rows) if point else np.empty(0)
                 for side, point in zip(sides, pair.sides, strict=True)]
                for pair in pairs
            ]  # fmt: skip
            if not any(side.size for both in values for side in both):
                continue
            main = main or metric
            quantity, never = quantities[metric], compared(metric, declared, main) == NEVER
            for pair, both in zip(pairs, values, strict=True):
                if both[0].size or both[1].size:
                    shown = [number for side in both for number in (side.size, *_estimate(side))]
                    change = _change(both[0], both[1], quantity.better, never)
                    known = (pair, quantity, metric, phase, metric == main, change)
                    yield [experiment, benchmark, *known, *shown]


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


def _adjusted(rows: pd.DataFrame) -> pd.DataFrame:
    """With what the changes say, and corrected p values: among all points of a benchmark, metric
    and phase (Benjamini and Hochberg), and among all that is said first of an experiment (Holm)."""
    for name in ("ratio", "low", "high", "p"):
        rows[name] = np.array([getattr(change, name) for change in rows["change"]], np.float64)
    rows["verdict"] = [change.verdict for change in rows["change"]]
    rank = rows["phase"].map(_PHASES.index).where(rows["main"]).astype(float)
    rows["first"] = rank.notna() & (
        rank == rank.groupby([rows[n] for n in CLAIM[:2]]).transform("min")
    )
    tested = rows[rows["p"].notna()]
    rows["p_adjusted"] = _corrected(tested, ["benchmark", "metric", "phase"], adjusted_p)
    rows["p_family"] = _corrected(tested[tested["first"]], ["experiment"], holm_p)
    rows["stands"] = rows["verdict"].isin(CHANGED) & (rows["p_family"] <= LEVEL)
    return rows


def _corrected(
    rows: pd.DataFrame, family: list[str], correct: Callable[[Sequence[float]], list[float]]
) -> "pd.Series[float]":
    """The p values of each family, corrected for their number."""
    made = pd.Series(np.nan, rows.index)
    for index in rows.groupby(family).groups.values():
        made.loc[index] = np.array(correct(rows.loc[index, "p"].tolist()))
    return made


def by_claim(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The ratios grouped by experiment, metric and phase, in their order."""
    return [group for _, group in rows.groupby(CLAIM, sort=False)]
