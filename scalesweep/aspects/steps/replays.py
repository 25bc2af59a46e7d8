"""Why steps are as long as they are, from the arrays ``[step, rank]`` of all repeats of a point."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.arrays import Arrays
from scalesweep.analysis.rank_stats import rank_matrix
from scalesweep.analysis.recurrence import recurrence_of
from scalesweep.analysis.resolution import resolution_of
from scalesweep.analysis.stats import MAD_TO_STD, linear_interval, t_quantile
from scalesweep.analysis.step_delays import (
    BOUND,
    EVERY,
    LASTING_FROM,
    PART,
    RARE,
    Causes,
    Delay,
    causes_of,
    followed,
    gain,
    lower_median,
)
from scalesweep.analysis.step_work import (
    BETWEEN,
    COMPUTE,
    INFERRED,
    STEP_TIMES,
    TRANSFER,
    BadSpansError,
    BadStepsError,
    StepWork,
    meet,
    shifting_operations,
    step_work,
)
from scalesweep.analysis.types import Floats
from scalesweep.core.errors import UserError
from scalesweep.core.npy import NO_USE, NOT_ARRAYS
from scalesweep.core.record import RECORD, holds_matches
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import Estimate
from scalesweep.tables.epoch_curves import run_seconds
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.run_arrays import arrays_of, ranks_of

_log = logging.getLogger(__name__)

MAX_CELLS = 4_000_000  # steps x ranks of all repeats of a point: the first of them, if it is more
MAX_RANK_ROWS = 64  # of a run
CURVES = 12  # runs of a point that have one
_ALIKE, _MOST_ALIKE = 1.25, 0.75  # a factor, and the share of all delays within it of the median
_SMALL = 0.05  # of the largest delay: another one's seconds
_SAME_PART = 0.1  # of all steps: how far the ends of a part may differ over the repeats
FEWEST_STALLS = 5  # over all repeats
FEWEST_ALIKE = 3  # repeats, all of which stall in the same steps
STANDS_OUT = 3.0  # standard deviations of the other steps, by which stalls are longer
ALL = "all"  # the causes of a point together
_MS = 1e3


@dataclass(frozen=True)
class RunSteps:
    """The steps of a run; ``work`` and ``causes`` None where it keeps no spans of them."""

    run_id: str
    repeat: int
    steps: Floats  # [step, rank], s
    side_effects: Sequence[str]
    work: StepWork | None
    causes: Causes | None
    resolution: float = 0.0  # of the clock, s; 0 where it is not coarse


@dataclass(frozen=True)
class _Cause:
    """A cause over the repeats of a point: ``delays`` by repeat, None where it was not there."""

    cause: str
    pattern: str
    delays: Sequence[Delay | None]
    ranks: tuple[int, ...]  # the same in most repeats; none: another in each

    @property
    def runs(self) -> int:
        return sum(delay is not None for delay in self.delays)


def read_steps(data: ExperimentData, point: Point, runs: Path) -> list[RunSteps]:
    """The runs of a point that keep their steps, as many as there is room for."""
    read: list[RunSteps] = []
    cells, ranks = 0, ranks_of(data, point)
    for row in point.rows.tolist():
        run_id = str(data.summary["run_id"].iloc[row])
        try:
            record = read_record(runs / run_id / RECORD)
            if record["samples"] is None or holds_matches(record):
                continue
            samples = arrays_of(record, runs / run_id)
            steps = rank_matrix(samples, STEP_TIMES, ranks)
            if steps is None or not np.isfinite(steps).all() or steps.min() <= 0:
                continue
            cells += steps.size
            if read and cells > MAX_CELLS:
                break
            said = record.get("notes")
            notes = said if isinstance(said, dict) else {}
            work = _work(samples, notes, ranks, run_seconds(record))
        except BadStepsError:
            continue
        except (UserError, KeyError, TypeError, *NOT_ARRAYS, *NO_USE) as error:
            if run_id not in data.unread:
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the table of steps", run_id, error)
            continue
        causes = None if work is None else causes_of(work)
        repeat = int(data.summary["repeat"].iloc[row])
        effects = shifting_operations(notes)
        coarse = 0.0 if work is None else resolution_of(samples, ranks)
        read.append(RunSteps(run_id, repeat, steps, effects, work, causes, coarse))
    return read


def _work(
    samples: Arrays, notes: Mapping[str, Any], ranks: int, seconds: float | None
) -> StepWork | None:
    """The work of the ranks; None where spans are missing, or cannot be (the summary says so), or
    ranks do not meet in their steps, as the program says. Raises BadStepsError where the steps
    cannot be, as the summary says too."""
    if not meet(notes):
        return None
    try:
        return step_work(samples, notes, ranks, seconds)
    except BadStepsError:
        raise
    except BadSpansError:
        return None


def cause_rows(runs: Sequence[RunSteps]) -> list[dict[str, Any]]:
    """The columns of `causes` of a point, of its repeats with ``work``: what most of them
    have in common, the largest gain first, then all of it together."""
    kept = _kept(runs)
    gains = [_gains(runs, cause.delays) for cause in kept]
    alone = np.array([values.mean() for values in gains])
    together = np.array(
        [
            _gain(run, [delay for cause in kept if (delay := cause.delays[place])])
            for place, run in enumerate(runs)
        ]
    )
    among = max(1, len(kept)) * runs[0].steps.shape[1]
    rows = [
        {**_row(cause, runs), **_gain_columns(values, among)}
        for cause, values in zip(kept, gains, strict=True)
    ]
    for cause, row in zip(kept, rows, strict=True):
        row["sure"] &= cause.pattern != RARE or (
            _often_enough(cause, row) and _stand_out(cause, runs)
        )
    order = np.argsort(-alone, kind="stable")
    nothing = _row(_Cause(ALL, "", [None] * len(runs), ()), runs)
    whole = {**nothing, **_gain_columns(together, 1), "ahead": _ahead(runs)}
    return [rows[place] for place in order] + [whole]


def _kept(runs: Sequence[RunSteps]) -> list[_Cause]:
    """The causes that more than half of the repeats have, with what each repeat has of them."""
    keys: dict[tuple[str, str, bool], list[list[Delay]]] = {}
    for place, run in enumerate(runs):
        assert run.causes is not None
        for delay in run.causes.delays:
            key = (delay.cause, delay.pattern, _is_shared(delay))
            keys.setdefault(key, [[] for _ in runs])[place].append(delay)
    result = []
    for (cause, pattern, shared), by_run in keys.items():
        delays = [_joined(delays) for delays in by_run]
        there = [delay for delay in delays if delay is not None]
        if 2 * len(there) <= len(runs):
            continue
        ranks = _common_ranks(there, len(runs))
        if pattern == EVERY and not shared and ranks:
            works = [run.work for run in runs]
            delays = [
                _signed(work, cause, ranks, delay)
                for work, delay in zip(works, delays, strict=True) if work is not None
            ]  # fmt: skip
        result.append(_Cause(cause, pattern, delays, ranks))
    return result


def _is_shared(delay: Delay) -> bool:
    """Whether a delay is of all ranks in about the same way."""
    return len(delay.ranks) == delay.extra.shape[1]


def _joined(delays: Sequence[Delay]) -> Delay | None:
    """Delays of one cause and pattern as one, without those that are small beside the largest."""
    if not delays:
        return None
    least = _SMALL * max(float(delay.extra.sum()) for delay in delays)
    extra = np.sum([delay.extra for delay in delays if delay.extra.sum() >= least], axis=0)
    return Delay(delays[0].cause, delays[0].pattern, np.asarray(extra))


def _common_ranks(delays: Sequence[Delay], runs: int) -> tuple[int, ...]:
    """Ranks that have a cause in more than half of all repeats, in their order."""
    counts: dict[int, int] = {}
    for delay in delays:
        for rank in delay.ranks:
            counts[rank] = counts.get(rank, 0) + 1
    return tuple(sorted(rank for rank, count in counts.items() if 2 * count > runs))


def _often_enough(cause: _Cause, row: Mapping[str, Any]) -> bool:
    """Whether stalls are several, regular, or in the same steps of each repeat: a single one is in
    the tail of any noise."""
    there = [delay for delay in cause.delays if delay is not None]
    alike = row["same_steps"] and len(cause.delays) >= FEWEST_ALIKE
    several = sum(int(d.steps.sum()) for d in there) >= FEWEST_STALLS
    return alike or several or row["every"] is not None


def _stand_out(runs: _Cause, every: Sequence[RunSteps]) -> bool:
    """Whether stalls are longer than the noise of other steps, on each rank that has them: the
    longest third of any steps is longer than the rest."""
    ratios: dict[int, list[float]] = {}
    for delay, run in zip(runs.delays, every, strict=True):
        if delay is None or run.work is None:
            continue
        stalled, everywhere = delay.extra > 0, np.ones(run.work.shape)
        exchange = run.work.transfer[:, None] * everywhere
        seconds = exchange if runs.cause == TRANSFER else run.work.causes[runs.cause]
        for rank in set(delay.ranks) & set(runs.ranks or delay.ranks):
            usual = seconds[~stalled[:, rank], rank]
            noise = MAD_TO_STD * float(np.median(np.abs(usual - np.median(usual))))
            size = float(np.median(delay.extra[stalled[:, rank], rank]))
            ratios.setdefault(rank, []).append(size / noise if noise > 0 else math.inf)
    return bool(ratios) and all(np.median(each) >= STANDS_OUT for each in ratios.values())


def _signed(work: StepWork, cause: str, ranks: Sequence[int], delay: Delay | None) -> Delay:
    """What ranks take longer in every step of one repeat, of either sign: where nothing was
    noticed, too, so that its mean over the repeats is not one of chosen values."""
    seconds = work.causes[cause]
    late = seconds - lower_median(seconds, axis=1)[:, None]
    if work.shape[1] == 2:  # of two ranks the faster one is the usual one, whichever it is
        late = seconds - seconds[:, ::-1]
    extra = np.zeros(work.shape)
    for rank in ranks:
        noticed = delay is not None and rank in delay.ranks
        extra[:, rank] = delay.extra[:, rank] if noticed and delay else np.median(late[:, rank])
    return Delay(cause, EVERY, extra)


def _gain(run: RunSteps, delays: Sequence[Delay]) -> float:
    assert run.work is not None
    assert run.causes is not None
    return gain(run.work, delays, run.causes.bound)


def _gains(runs: Sequence[RunSteps], delays: Sequence[Delay | None]) -> Floats:
    """Seconds per step that each repeat gains without its delay."""
    return np.array(
        [
            0.0 if delay is None else _gain(run, [delay])
            for run, delay in zip(runs, delays, strict=True)
        ]
    )


def _gain_columns(seconds: Floats, among: int) -> dict[str, Any]:
    """The mean over the repeats in ms with its 95 % interval; ``sure``: above 0, for the largest of
    ``among`` that might have been (Bonferroni)."""
    values = seconds * _MS
    bounds = linear_interval(values)
    sure = False
    if values.size > 1:
        error = float(values.std(ddof=1) / np.sqrt(values.size))
        sure = float(values.mean()) - t_quantile(values.size - 1, among) * error > 0
    return {"gain_ms": Estimate.of(float(values.mean()), bounds.low, bounds.high), "sure": sure}


def _row(cause: _Cause, runs: Sequence[RunSteps]) -> dict[str, Any]:
    """What is said of a cause: who, how long, in which steps."""
    there = [delay for delay in cause.delays if delay is not None]
    counts = {rank: sum(rank in delay.ranks for delay in there) for delay in there
              for rank in delay.ranks}  # fmt: skip
    several = sorted(cause.ranks) or sorted(counts)
    lengths = np.array([_length(delay) for delay in there]) * _MS
    ends = _ends(there)
    bounds = linear_interval(lengths) if lengths.size else None
    places = [p for delay in there if (p := np.flatnonzero(delay.steps)).size]
    steps = np.array([len(run.steps) for run in runs], np.float64)
    inferred = any(run.work is not None and run.work.between == INFERRED for run in runs)
    effects = dict.fromkeys(name for run in runs for name in run.side_effects)
    periods_ms = [float(run.work.periods.mean()) * _MS for run in runs if run.work is not None]
    recurs = recurrence_of(places, int(steps.max()))
    return {
        "repeats": len(runs), "cause": cause.cause, "pattern": cause.pattern, "runs": cause.runs,
        "step_ranks": ", ".join(map(str, several)), "of_ranks": runs[0].steps.shape[1],
        "same_ranks": bool(cause.ranks) or not there,
        "longer_ms": bounds and Estimate.of(float(lengths.mean()), bounds.low, bounds.high),
        "shortest_ms": None if ends is None else ends[0],
        "longest_ms": None if ends is None else ends[1],
        "median_ms": None if ends is None else ends[2],
        "count": float(np.mean([p.size for p in places])) if places else None,
        "of_steps": float(steps.mean()),
        "first": int(np.median([p[0] for p in places])) + 1 if places else None,
        "last": int(np.median([p[-1] for p in places])) + 1 if places else None,
        "every": recurs.every,
        "within_first": None if recurs.part is None else recurs.part[0] + 1,
        "within_last": None if recurs.part is None else recurs.part[1] + 1,
        "same_steps": _same_steps(cause), "at_once": _at_once(there),
        "changes": _changes(there),
        "by_rank": _by_rank(there, several),
        "lengths": _lengths(there, several), "parts": _parts(there, several), "ahead": "",
        "inferred": cause.cause == BETWEEN and inferred,
        "side_effects": ", ".join(effects), "step_ms": float(np.mean(periods_ms)),
        "shared": bool(there) and all(_is_shared(delay) for delay in there),
        "resolution_ms": max(run.resolution for run in runs) * _MS,
        "stages": min(run.work.stages for run in runs if run.work is not None),
        "within": any(run.work is not None and run.work.within for run in runs),
    }  # fmt: skip


def _length(delay: Delay) -> float:
    """Seconds that a delay takes: of one that lasts the mean of the rank that has most of it, of
    single ones the median of those."""
    if delay.pattern in (EVERY, BOUND):
        means = delay.extra.mean(axis=0)  # of either sign: see ``_signed``
        return float(means[np.abs(means).argmax()])
    return float(np.median(delay.lengths))


def _ends(delays: Sequence[Delay]) -> tuple[float, float, float | None] | None:
    """The shortest and the longest of single delays in ms, and their median where most of them are
    about as long; of one that lasts, the least and the most over the steps, without their
    scatter, the mean over the repeats."""
    lengths = [
        delay.lengths * _MS for delay in delays if delay.pattern != BOUND and delay.lengths.size
    ]
    if not lengths:
        return None
    if delays[0].pattern == EVERY:
        own = [
            followed(delay.extra[:, delay.ranks].mean(axis=1)) * _MS
            for delay in delays
            if delay.ranks
        ]
        least, most = np.mean([(each.min(), each.max()) for each in own], axis=0)
        return float(least), float(most), None
    pooled = np.concatenate(lengths)
    middle = float(np.quantile(pooled, 0.5, method="inverted_cdf"))
    alike = (pooled <= _ALIKE * middle) & (pooled >= middle / _ALIKE)
    median = middle if alike.mean() >= _MOST_ALIKE else None
    return float(pooled.min()), float(pooled.max()), median


def _ahead(runs: Sequence[RunSteps]) -> str:
    """By how many ms a step ranks compute less than the ones in the middle, the least and the most
    of all repeats, as ``rank: least/most``: those that do so by 2 % of a step in one of them."""
    works = [run.work for run in runs if run.work is not None]
    computing = np.stack([work.causes[COMPUTE].mean(axis=0) for work in works])
    less = lower_median(computing, axis=1)[:, None] - computing
    step = float(np.mean([work.periods.mean() for work in works]))
    least, most = less.min(axis=0) * _MS, less.max(axis=0) * _MS
    ranks = np.flatnonzero(most >= LASTING_FROM * step * _MS)
    return ", ".join(f"{rank}: {least[rank]:.6g}/{most[rank]:.6g}" for rank in ranks)


def _same_steps(cause: _Cause) -> bool:
    """Whether all repeats have a cause, of which there are several, and in the same steps."""
    steps = {delay and tuple(np.flatnonzero(delay.steps)) for delay in cause.delays}
    return len(cause.delays) > 1 and len(steps) == 1 and None not in steps


def _at_once(delays: Sequence[Delay]) -> float | None:
    """How many ranks have a delay in a step that has it, on average."""
    counts = [delay.at_once for delay in delays if delay.ranks]
    return float(np.mean(counts)) if counts else None


def _changes(delays: Sequence[Delay]) -> float | None:
    """In how many of the steps that have a delay it is of other ranks than in the one before, as a
    share."""
    late = [(delay.extra > 0)[delay.steps] for delay in delays]
    pairs = [~(each[1:] & each[:-1]).any(axis=1) for each in late]
    changes = np.concatenate(pairs) if pairs else np.zeros(0)
    return float(changes.mean()) if changes.size else None


def _by_rank(delays: Sequence[Delay], ranks: Sequence[int]) -> str:
    """In how many steps of a run each rank has a delay, on average, as ``rank: count``."""
    if not delays or delays[0].extra.shape[1] > MAX_RANK_ROWS:
        return ""
    counts = np.mean([(delay.extra > 0).sum(axis=0) for delay in delays], axis=0)
    return ", ".join(f"{rank}: {counts[rank]:.6g}" for rank in ranks)


def _lengths(delays: Sequence[Delay], ranks: Sequence[int]) -> str:
    """How many ms each rank has a delay, on average over the repeats, as ``rank: ms``."""
    lengths = []
    for rank in ranks:
        own = [
            Delay(delay.cause, delay.pattern, delay.extra[:, [rank]])
            for delay in delays if delay.extra[:, rank].any()
        ]  # fmt: skip
        if own:
            lengths.append(f"{rank}: {np.mean([_length(each) for each in own]) * _MS:.6g}")
    return ", ".join(lengths)


def _parts(delays: Sequence[Delay], ranks: Sequence[int]) -> str:
    """The first and last step of each rank's part of the run, as ``rank: first-last``; without the
    ranks that have another part in each repeat."""
    parts = []
    for rank in ranks:
        places = [p for delay in delays if (p := np.flatnonzero(delay.extra[:, rank] > 0)).size]
        if not places or delays[0].pattern != PART:
            continue
        ends = np.array([(own[0] + 1, own[-1] + 1) for own in places])
        if np.ptp(ends, axis=0).max() <= _SAME_PART * len(delays[0].extra):
            first, last = np.median(ends, axis=0)
            parts.append(f"{rank}: {first:.0f}-{last:.0f}")
    return ", ".join(parts)
