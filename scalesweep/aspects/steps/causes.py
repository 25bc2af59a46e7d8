"""The rows of `causes`: what the repeats of a point have in common that makes its steps longer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scalesweep.analysis.multiple import LEVELS, STEP
from scalesweep.analysis.resolution import FEWEST_TICKS
from scalesweep.analysis.stats import linear_interval, t_chance, t_quantile
from scalesweep.analysis.step_delays import (
    EVERY,
    LASTING_FROM,
    SINGLE,
    Delay,
    beyond_others,
    gain,
    without,
)
from scalesweep.analysis.step_work import BETWEEN, INFERRED
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.runs import Accounted
from scalesweep.core.formatting import number
from scalesweep.table.declared import Estimate

ALL = "all"  # the causes of a point together
NOTABLE = LASTING_FROM  # of a step: what is shorter is no reason to act
FEWEST_SINGLE = 5  # over all runs, unless three runs have them in the same steps
_MS = 1e3


@dataclass(frozen=True)
class _Cause:
    """A cause over the repeats of a point: ``delays`` by repeat, None where it was not there."""

    cause: str
    pattern: str
    ranks: tuple[int, ...]
    delays: Sequence[Delay | None]

    @property
    def there(self) -> list[Delay]:
        """The delays of the repeats that have it."""
        return [delay for delay in self.delays if delay is not None]


def cause_rows(runs: Sequence[Accounted]) -> list[dict[str, Any]]:
    """The columns of `causes` of a point: what more than half of its repeats have, the largest gain
    first, then all of it together, with what stays unexplained."""
    kept = _kept(runs)
    # The largest of as many as there might have been (Bonferroni).
    among = max(1, len(kept)) * runs[0].work.shape[1]
    rows = [_row(cause, runs, among) for cause in kept]
    rows.sort(key=lambda row: -row["gain_ms"].value)
    return [*rows, _together(kept, runs)]


def _kept(runs: Sequence[Accounted]) -> list[_Cause]:
    by_kind: dict[tuple[str, str], list[Delay | None]] = {}
    for place, run in enumerate(runs):
        for delay in run.causes.delays:
            delays = by_kind.setdefault((delay.cause, delay.pattern), [None] * len(runs))
            before = delays[place]
            extra = delay.extra if before is None else np.maximum(before.extra, delay.extra)
            delays[place] = replace(delay, extra=extra)
    causes = []
    for (cause, pattern), delays in by_kind.items():
        there = [delay for delay in delays if delay is not None]
        every = sorted({rank for delay in there for rank in delay.ranks})
        in_most = [r for r in every if 2 * sum(r in delay.ranks for delay in there) > len(runs)]
        if 2 * len(there) <= len(runs) or (pattern == EVERY and not in_most):
            continue
        ranks, signed = tuple(in_most or every), delays
        if pattern == EVERY:
            signed = [_of_ranks(*each, cause, ranks) for each in zip(runs, delays, strict=True)]
        causes.append(_Cause(cause, pattern, ranks, signed))
    return causes


def _of_ranks(run: Accounted, delay: Delay | None, cause: str, ranks: Sequence[int]) -> Delay:
    """What ranks take longer in every step of a run, of either sign: of a run in which nothing was
    noticed, too, so that the mean over the repeats is not one of chosen values."""
    late = np.median(beyond_others(run.work.causes[cause]), axis=0)
    extra = np.zeros(run.work.shape)
    for rank in ranks:
        noticed = delay is not None and rank in delay.ranks
        extra[:, rank] = delay.extra[:, rank] if noticed and delay else late[rank]
    return Delay(cause, EVERY, extra)


def _row(cause: _Cause, runs: Sequence[Accounted], among: int) -> dict[str, Any]:
    ranks = list(cause.ranks)
    if cause.pattern == EVERY:
        longer = [float(delay.extra[:, ranks].mean()) for delay in cause.there]
    else:
        longer = [delay.seconds for delay in cause.there]
    ms = np.array(longer) * _MS
    gains = _gains(runs, [[] if delay is None else [delay] for delay in cause.delays])
    # What is in every step is tested by its size; single ones, which are chosen, by their gain.
    p, decides = _tested(ms if cause.pattern == EVERY else gains, among)
    places = [delay.steps for delay in cause.there if delay.steps]
    row = {
        "cause": cause.cause,
        "pattern": cause.pattern,
        "runs": len(cause.there),
        "step_ranks": ", ".join(map(str, ranks)),
        "steps": float(np.mean([len(own) for own in places])),
        "first": int(np.median([own[0] for own in places])) + 1,
        "last": int(np.median([own[-1] for own in places])) + 1,
        "ms": _estimate(ms),
        "gain_ms": _estimate(gains),
        "decides": decides,
        "p": p,
        "inferred": cause.cause == BETWEEN and any(r.work.between == INFERRED for r in runs),
        **_of_point(runs),
    }
    reason = _reason(cause, runs, row)
    return row | {"clear": not reason, "reason": reason}


def _together(kept: Sequence[_Cause], runs: Sequence[Accounted]) -> dict[str, Any]:
    """The row `all`; unexplained is what ranks wait for each other without all causes."""
    by_run = [
        [delay for cause in kept if (delay := cause.delays[place])] for place in range(len(runs))
    ]
    gains, left = _gains(runs, by_run), []
    for run, delays in zip(runs, by_run, strict=True):
        own = without(run.work, delays, run.causes.bound).own
        left.append(
            float((own.max(axis=1) - np.sort(own, axis=1)[:, (own.shape[1] - 1) // 2]).mean())
        )
    p, decides = _tested(gains, 1)
    row = {
        "cause": ALL, "pattern": "", "runs": len(runs), "step_ranks": "",
        "steps": float(np.mean([run.work.shape[0] for run in runs])), "first": None, "last": None,
        "ms": None, "gain_ms": _estimate(gains), "decides": decides, "p": p,
        "unexplained_ms": _estimate(np.array(left) * _MS), "inferred": False, **_of_point(runs),
    }  # fmt: skip
    reason = _doubt(runs, row)
    return row | {"clear": not reason, "reason": reason}


def _of_point(runs: Sequence[Accounted]) -> dict[str, Any]:
    steps = [float(run.work.periods.mean()) for run in runs]
    return {
        "repeats": len(runs),
        "of_steps": float(np.mean([run.work.shape[0] for run in runs])),
        "step_ms": float(np.mean(steps)) * _MS,
        "resolution_ms": max(run.resolution for run in runs) * _MS,
    }


def _gains(runs: Sequence[Accounted], delays: Sequence[Sequence[Delay]]) -> Floats:
    """Ms per step that each repeat gains without its delays."""
    gained = [gain(r.work, own, r.causes.bound) for r, own in zip(runs, delays, strict=True)]
    return np.array(gained) * _MS


def _estimate(values: Floats) -> Estimate:
    bounds = linear_interval(values)
    return Estimate.of(float(values.mean()), bounds.low, bounds.high)


def _tested(values: Floats, among: int) -> tuple[float | None, Estimate]:
    """The p value of a mean over the repeats being 0, of the one chosen ``among`` several, and the
    interval of the level that decides."""
    mean, n = float(values.mean()), values.size
    if n < 2:
        return None, Estimate(mean)
    error = float(values.std(ddof=1)) / n**0.5
    half = t_quantile(n - 1, among, 1 - LEVELS[STEP]) * error
    p = min(1.0, among * t_chance(mean, error, n - 1))
    return p, Estimate(mean, mean - half, mean + half)


def _reason(cause: _Cause, runs: Sequence[Accounted], row: Mapping[str, Any]) -> str:
    """Why a cause is open; empty if it is clear."""
    if said := rounded(row["ms"].value, row["resolution_ms"]):
        return said
    if cause.pattern == SINGLE and any(run.work.within for run in runs):
        return "ranks wait for each other within a step"
    places = [delay.steps for delay in cause.there]
    alike = len(places) == len(runs) > 2 and all(own == places[0] for own in places)
    if cause.pattern == SINGLE and not alike and sum(map(len, places)) < FEWEST_SINGLE:
        return f"fewer than {FEWEST_SINGLE} in all runs may be noise"
    return _doubt(runs, row)


def rounded(ms: float, tick_ms: float) -> str:
    """That a time may be the rounding of a coarse clock; empty if it is not."""
    coarse = ms < FEWEST_TICKS * tick_ms
    return f"the clock counts in steps of {number(tick_ms)} ms" if coarse else ""


def _doubt(runs: Sequence[Accounted], row: Mapping[str, Any]) -> str:
    if len(runs) == 1:
        return "one run"
    if effects := sorted({name for run in runs for name in run.side_effects}):
        return f"{', '.join(effects)} in the step may shift its stamps"
    low = row["decides"].low
    return "" if low is not None and low > 0 else "the interval leaves it open"
