"""Ratios new over base at each point: one frame, a row a point, metric and phase, with its verdict.

A verdict goes by the plain 95 % interval of its own ratio. As many are looked at together, each
also has a p value corrected for that. What the page says first of an experiment is corrected for
all that it might have said.
"""

from collections.abc import Callable, Mapping, Sequence
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
    column,
    compared,
    quantities_of,
)
from scalesweep.analysis.multiple import adjusted_p, holm_p
from scalesweep.compare.joined import BASE, NEW, Joined
from scalesweep.compare.sides import Side
from scalesweep.judge.change import CHANGED, INCONCLUSIVE, moments
from scalesweep.judge.change import ratios as ratios_of

ONLY_BASE, ONLY_NEW = "only base", "only new"
# In at most so many comparisons any change that is said first is a false one: Welch's t of few
# repeats is a bit liberal far out.
LEVEL = 0.04
_PHASES = ("later", "run", "init")  # the first there is of a main metric is said first
CLAIM = ["experiment", "metric", "phase"]
_NEVER = "not compared: of runs that neither trained to a target nor a fixed amount"


def ratios(joined: Joined, base: Side, new: Side) -> tuple[pd.DataFrame, list[str]]:
    """Every metric and phase of every pair, by experiment, its main metric first; and, in words,
    metrics that mean different things on the two sides, which are not compared.

    ``first``: whether the page may say it first; ``stands``: a change that remains one among all
    that is said first. Beside them: ``pair`` of ``joined``, and what ``judge.change.ratios`` has.
    """
    sides = {BASE: base, NEW: new}
    groups, unlike = [], {}
    by_kind: Any = joined.pairs.groupby(["experiment", "benchmark"], sort=False)
    for (experiment, benchmark), pairs in by_kind:
        quantities, words = quantities_of_both(benchmark, base, new)
        unlike.update(dict.fromkeys(words))
        own = {name: runs[runs["pair"].isin(pairs.index)] for name, runs in joined.runs.items()}
        values = [_moments(sides[name], own[name], quantities) for name in (BASE, NEW)]
        rows = _judged(values[0], values[1], quantities)
        if len(rows):
            rows.insert(0, "experiment", experiment)
            groups.append(_ordered(rows, benchmark, [base, new]))
    if not groups:
        return pd.DataFrame(columns=[*CLAIM, "pair", "p", "main", "first", "verdict"]), list(unlike)
    return _adjusted(pd.concat(groups, ignore_index=True), joined.pairs["benchmark"]), list(unlike)


def quantities_of_both(
    benchmark: str, base: Side, new: Side
) -> tuple[dict[str, Quantity], list[str]]:
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


def _moments(side: Side, runs: pd.DataFrame, quantities: Mapping[str, Quantity]) -> pd.DataFrame:
    """The repeats of each pair, metric and phase that a side has."""
    named = {
        column(metric, "mean", phase): (metric, phase)
        for metric in quantities
        # A program may report one of our own metrics itself, as one number.
        for phase in ((*EPOCH_PHASES, "run") if metric in EPOCH_METRICS else ("run",))
    }
    there = [name for name in named if name in side.summary]
    wide = side.summary[there].iloc[runs["row"]].assign(pair=runs["pair"].to_numpy())
    long = wide.melt("pair", var_name="column").astype({"value": float})
    long = long[np.isfinite(long["value"])]
    for place, name in enumerate(("metric", "phase")):
        long[name] = [named[text][place] for text in long["column"]]
    return moments(long, ["pair", "metric", "phase"])


def _judged(
    base: pd.DataFrame, new: pd.DataFrame, quantities: Mapping[str, Quantity]
) -> pd.DataFrame:
    """A row per pair, metric and phase: both sides, and the verdict on their ratio."""
    index = base.index.union(new.index)
    sides = [side.reindex(index) for side in (base, new)]
    of = [quantities[metric] for metric in index.get_level_values("metric")]
    words = {name: [getattr(q, name) for q in of] for name in ("label", "unit", "better")}
    shown = ["repeats", "mean", "low", "high"]
    rows = pd.concat(
        [
            pd.DataFrame(words, index),
            *(
                side[shown].add_prefix(f"{name}_")
                for side, name in zip(sides, (BASE, NEW), strict=True)
            ),
            ratios_of(sides[0], sides[1], words["better"]),
        ],
        axis=1,
    )
    counts = [f"{name}_repeats" for name in (BASE, NEW)]
    rows[counts] = rows[counts].fillna(0).astype(int)
    for name, verdict in zip(counts, (ONLY_NEW, ONLY_BASE), strict=True):
        rows.loc[rows[name] == 0, ["verdict", "reason"]] = [verdict, ""]
    return rows.reset_index()


def _ordered(rows: pd.DataFrame, benchmark: str, sides: Sequence[Side]) -> pd.DataFrame:
    """The rows of an experiment with its ``main`` metric first; without verdicts on what a model
    has learned, unless the benchmark says that its runs train alike."""
    entries = [e for side in sides for e in side.experiments if e["benchmark"] == benchmark]
    entries.sort(key=lambda entry: entry["name"] != rows["experiment"].iloc[0])
    wanted = [str(e["main_metric"]) for e in entries if e["main_metric"]][:1]
    wanted += ["total_throughput", *(name for e in entries for name in e["metrics"])]
    wanted += rows["metric"].tolist()
    declared = {k: v for entry in entries for k, v in entry.get("compare", {}).items()}
    rank = rows["metric"].map(wanted.index)
    rows["main"] = rank == rank.min()
    main = wanted[rank.min()]
    never = rows["metric"].map(lambda name: compared(name, declared, main) == NEVER)
    never &= ~rows["verdict"].isin([ONLY_BASE, ONLY_NEW])
    rows.loc[never, ["verdict", "reason"]] = [INCONCLUSIVE, _NEVER]
    rows.loc[never, ["ratio", "low", "high", "se", "df", "p"]] = np.nan
    phase = rows["phase"].map((*EPOCH_PHASES, "run").index)
    order = rows.assign(rank=rank, at=phase).sort_values(["rank", "at", "pair"]).index
    return rows.loc[order]


def _adjusted(rows: pd.DataFrame, benchmarks: "pd.Series[str]") -> pd.DataFrame:
    """With corrected p values: among all points of a benchmark, metric and phase (Benjamini and
    Hochberg), and among all that is said first of an experiment (Holm)."""
    rank = rows["phase"].map(_PHASES.index).where(rows["main"])
    rows["first"] = rank.notna() & (rank == rank.groupby(rows["experiment"]).transform("min"))
    tested = rows[rows["p"].notna()]
    family = [tested["pair"].map(benchmarks), tested["metric"], tested["phase"]]
    rows["p_adjusted"] = _corrected(tested["p"], family, adjusted_p)
    first = tested[tested["first"]]
    rows["p_family"] = _corrected(first["p"], [first["experiment"]], holm_p)
    rows["stands"] = rows["verdict"].isin(CHANGED) & (rows["p_family"] <= LEVEL)
    return rows


def _corrected(
    p: "pd.Series[float]",
    family: Sequence["pd.Series[str]"],
    correct: Callable[[Sequence[float]], list[float]],
) -> "pd.Series[float]":
    """The p values of each family, corrected for their number."""
    return p.groupby(list(family)).transform(lambda own: np.array(correct(own.tolist())))


def by_claim(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The ratios grouped by experiment, metric and phase, in their order."""
    return [group for _, group in rows.groupby(CLAIM, sort=False)]
