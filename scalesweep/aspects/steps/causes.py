"""The rows of `causes`: what the repeats of a point have in common that makes its steps longer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.multiple import LEVELS, STEP
from scalesweep.analysis.stats import Estimate, signed_mean_of, t_chance, t_quantile
from scalesweep.analysis.step_delays import (
    EVERY,
    LASTING_FROM,
    SINGLE,
    Delay,
    beyond_others,
    gain,
    lower_median,
    without,
)
from scalesweep.analysis.step_work import StepWork
from scalesweep.analysis.types import Floats

ALL = "all"  # the causes of a point together
NOTABLE = LASTING_FROM  # of a step: what is shorter is no reason to act
FEWEST_SINGLE = 5  # over all runs, unless three runs have them in the same steps
_MS = 1e3


@dataclass(frozen=True)
class Accounted:
    """The work of a run's ranks, what makes it longer, and ranks whose pace their input sets."""

    work: StepWork
    delays: Sequence[Delay]
    bound: Sequence[int]


@dataclass(frozen=True)
class _Cause:
    """A cause over the repeats of a point: ``delays`` by repeat, None where it was not there."""

    cause: str
    pattern: str
    ranks: list[int]
    delays: Sequence[Delay | None]


def cause_rows(runs: Sequence[Accounted]) -> list[dict[str, Any]]:
    """The columns of `causes` of a point: what more than half of its repeats have and costs 2 % of
    a step, the largest gain first, then all of it together, with what stays unexplained."""
    kept = list(_kept(runs))
    # The largest of as many as there might have been (Bonferroni).
    among = max(1, len(kept)) * runs[0].work.shape[1]
    rows = [(cause, _row(cause, runs, among)) for cause in kept]
    rows = [(cause, row) for cause, row in rows if _costs(row) >= NOTABLE * row["step_ms"]]
    together = _together([cause for cause, _ in rows], runs)
    return [*sorted((row for _, row in rows), key=lambda row: -row["gain_ms"].value), together]


def _costs(row: Mapping[str, Any]) -> float:
    """Ms a step: what it gains, or what ranks take longer in every step, which others may hide."""
    longer = row["ms"].value if row["pattern"] == EVERY else 0.0
    return float(max(longer, row["gain_ms"].value))


def _kept(runs: Sequence[Accounted]) -> Iterator[_Cause]:
    by_run = [{(d.cause, d.pattern): d for d in run.delays} for run in runs]
    for cause, pattern in dict.fromkeys(kind for delays in by_run for kind in delays):
        delays: list[Delay | None] = [known.get((cause, pattern)) for known in by_run]
        counts = Counter(rank for delay in delays if delay for rank in delay.ranks)
        in_most = sorted(rank for rank, count in counts.items() if 2 * count > len(runs))
        if 2 * sum(map(bool, delays)) <= len(runs) or (pattern == EVERY and not in_most):
            continue
        ranks = in_most or sorted(counts)
        if pattern == EVERY:
            delays = [_of_ranks(*each, cause, ranks) for each in zip(runs, delays, strict=True)]
        yield _Cause(cause, pattern, ranks, delays)


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
    there = [delay for delay in cause.delays if delay is not None]
    lasting = cause.pattern == EVERY
    longer = [float(d.extra[:, cause.ranks].mean()) if lasting else d.seconds for d in there]
    ms = np.array(longer) * _MS
    gains = _gains(runs, [[] if delay is None else [delay] for delay in cause.delays])
    # What is in every step is tested by its size; single ones, which are chosen, by their gain.
    p, decides = _tested(ms if lasting else gains, among)
    places = [delay.steps for delay in there if delay.steps]
    row = {
        "cause": cause.cause, "pattern": cause.pattern, "runs": len(there),
        "step_ranks": ", ".join(map(str, cause.ranks)),
        "steps": float(np.mean([len(own) for own in places])),
        "first": int(np.median([own[0] for own in places])) + 1,
        "last": int(np.median([own[-1] for own in places])) + 1,
        "ms": signed_mean_of(ms), "gain_ms": signed_mean_of(gains), "decides": decides, "p": p,
        **_of_point(runs),
    }  # fmt: skip
    unusual = _unusual([d.steps for d in there], runs) if cause.pattern == SINGLE else ""
    reason = unusual or _doubt(runs, decides)
    return row | {"clear": not reason, "reason": reason}


def _together(kept: Sequence[_Cause], runs: Sequence[Accounted]) -> dict[str, Any]:
    """The row `all`; unexplained is what ranks wait for each other without all causes."""
    by_run = [[d for cause in kept if (d := cause.delays[place])] for place in range(len(runs))]
    gains, left = _gains(runs, by_run), []
    for run, delays in zip(runs, by_run, strict=True):
        own = without(run.work, delays, run.bound).own
        left.append(float((own.max(axis=1) - lower_median(own, axis=1)).mean()) * _MS)
    p, decides = _tested(gains, 1)
    reason = _doubt(runs, decides)
    return {
        "cause": ALL, "pattern": "", "runs": len(runs), "step_ranks": "",
        "steps": float(np.mean([run.work.shape[0] for run in runs])), "first": None, "last": None,
        "ms": None, "gain_ms": signed_mean_of(gains), "decides": decides, "p": p,
        "unexplained_ms": signed_mean_of(left), "clear": not reason,
        "reason": reason, **_of_point(runs),
    }  # fmt: skip


def _of_point(runs: Sequence[Accounted]) -> dict[str, Any]:
    return {
        "repeats": len(runs),
        "of_steps": float(np.mean([run.work.shape[0] for run in runs])),
        "step_ms": float(np.mean([run.work.periods.mean() for run in runs])) * _MS,
    }


def _gains(runs: Sequence[Accounted], delays: Sequence[Sequence[Delay]]) -> Floats:
    """Ms per step that each repeat gains without its delays."""
    gained = [gain(r.work, own, r.bound) for r, own in zip(runs, delays, strict=True)]
    return np.array(gained) * _MS


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


def _unusual(places: Sequence[Sequence[int]], runs: Sequence[Accounted]) -> str:
    """Why single steps, which lie at ``places`` of each run, are open by themselves; else empty."""
    if any(run.work.within for run in runs):
        return "ranks wait for each other within a step"
    alike = len(places) == len(runs) > 2 and all(own == places[0] for own in places)
    few = not alike and sum(map(len, places)) < FEWEST_SINGLE
    return f"fewer than {FEWEST_SINGLE} in all runs may be noise" if few else ""


def _doubt(runs: Sequence[Accounted], decides: Estimate) -> str:
    if len(runs) == 1:
        return "one run"
    return "" if decides.low is not None and decides.low > 0 else "the interval leaves it open"
