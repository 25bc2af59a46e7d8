"""What the times of a run's ranks say of each rank: how slow it is, and what chance makes of that.

Arrays are ``[step, rank]`` in seconds; a step is an epoch where a program keeps no steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import MAD_TO_STD, SEED, Estimate, mean_of
from scalesweep.analysis.types import Floats

# Whose time it is. WORK: of the rank alone. INPUT: waiting for batches. STEP and EPOCH: as the
# program timed them, which may hold waiting for other ranks. In an epoch, or in a step.
WORK, INPUT, STEP, EPOCH = "work", "input", "step", "epoch"
STEP_WORK, STEP_INPUT = "step-work", "step-input"
ALONE, READING = frozenset({WORK, STEP_WORK}), frozenset({INPUT, STEP_INPUT})
# Extra time below this share of a step is not worth a name.
NOTABLE = 0.05
# The most that chance may make of a slow rank, in so many random orders; in so many of the runs it
# is slow, by at least half of what is notable.
CHANCE, SHUFFLES, MOST_RUNS = 0.01, 399, 0.8
# Steps of a run are taken together to at most so many blocks, those of all runs to so many.
BLOCKS, UNITS = 8, 24
# Of five ranks or more, a slow one lies so many robust standard deviations apart.
FAR_FROM, FAR = 5, 3.5


def rank_matrix(samples: Mapping[str, NDArray[Any]], name: str, ranks: int) -> Floats | None:
    """An array [step, rank] of a run's samples as float64; None if there is none of this shape."""
    if name not in samples:
        return None
    array = samples[name]
    shaped = array.ndim == 2 and array.shape[1] == ranks and array.size > 0
    return array.astype(np.float64, copy=False) if shaped and array.dtype.kind in "fiu" else None


def own_times(samples: Mapping[str, NDArray[Any]], ranks: int) -> dict[str, tuple[Floats, Floats]]:
    """The times by rank that the arrays of a run hold, by whose time it is, each with whole steps'.

    Steps without those of the warm-up, else epochs without the first if there are more. What a
    program reports as its own work (``span_compute`` with ``span_input``), or an epoch that is all
    input, is WORK; ``span_input`` alone is INPUT. Left out: arrays that are not positive, or were
    timed by one clock for all ranks.
    """

    def known(name: str) -> Floats | None:
        values = rank_matrix(samples, name, ranks)
        if values is None or not np.isfinite(values).all():
            return None
        return values[1:] if name != "step_times" and len(values) > 1 else values

    names = ("step_times", "local_times", "span_compute", "span_input")
    steps, local, computing, reading = map(known, names)
    whole = local if steps is None else steps
    times: dict[str, Floats | None] = {EPOCH if steps is None else STEP: whole}
    if computing is not None:
        both = reading is not None and reading.shape == computing.shape
        times[WORK] = computing + reading if both and reading is not None else computing
    elif reading is not None and local is not None and np.array_equal(local, reading):
        times = {WORK: local}
    else:
        times[INPUT] = reading
    times_of: dict[str, tuple[Floats, Floats]] = {}
    for kind, values in times.items():
        if values is None or values.min() <= 0 or (values == values[:, :1]).all():
            continue
        of_steps = kind in (WORK, INPUT) and steps is not None and len(values) >= len(steps) - 1
        name = {WORK: STEP_WORK, INPUT: STEP_INPUT}[kind] if of_steps else kind
        alike = whole is not None and (of_steps or len(whole) == len(values))
        times_of[name] = (values, whole[-len(values) :] if alike and whole is not None else values)
    return dict(sorted(times_of.items(), key=lambda item: item[0] in (STEP, EPOCH)))


@dataclass(frozen=True)
class RankTimes:
    """The times of one run's ranks (or hosts), reduced: s by rank, and medians ``[block, rank]``;
    ``step`` is the median of whole steps."""

    medians: Floats
    means: Floats
    blocks: Floats
    step: float

    @property
    def slow(self) -> Floats:
        """Median over that of all ranks."""
        return np.asarray(self.medians / np.median(self.medians), np.float64)

    @property
    def excess(self) -> Floats:
        """What median and mean both have more than those of all ranks, in whole steps.

        Where steps wait for all ranks medians may differ, but means cannot by much.
        """
        more = [values - np.median(values) for values in (self.medians, self.means)]
        return np.asarray(np.minimum(*more) / self.step, np.float64)

    def of_hosts(self, hosts: Sequence[str], names: Sequence[str]) -> "RankTimes":
        """The same of hosts: of each the median over its ranks."""
        places = [[rank for rank, host in enumerate(hosts) if host == name] for name in names]
        medians, means, blocks = (
            np.stack([np.median(values[..., own], axis=-1) for own in places], axis=-1)
            for values in (self.medians, self.means, self.blocks)
        )
        return RankTimes(medians, means, blocks, self.step)


def rank_times(times: Floats, whole: Floats) -> RankTimes:
    """Reduce ``times[step, rank]``; ``whole`` are the times of whole steps."""
    blocks = [np.median(part, axis=0) for part in np.array_split(times, min(len(times), BLOCKS))]
    return RankTimes(
        np.median(times, axis=0), times.mean(axis=0), np.stack(blocks), float(np.median(whole))
    )


@dataclass(frozen=True)
class Slow:
    """A rank (or host) that is slower than the others: its median time over that of all, of two
    over the other one's, and its 95 % interval over the runs; ``excess`` in whole steps."""

    place: int
    ratio: Estimate
    excess: float

    @property
    def sure(self) -> bool:
        """Whether the interval lies above 1."""
        return self.ratio.low is not None and self.ratio.low > 1


def slow_ranks(runs: Sequence[RankTimes]) -> list[Slow]:
    """The ranks (or hosts) that are slower than the others, the slowest first.

    Of three or more: by 5 % of a step on average, by half of that in four of five runs, by more
    than chance makes of the slowest of so many in 1 of 100 cases (``chances``), of five or more
    with a modified z-score over 3.5. Of two: over several runs, with an interval above 1. One that
    three runs or more refute (their interval holds 1) is left out.
    """
    excess = np.stack([run.excess for run in runs])
    more, count = excess.mean(axis=0), excess.shape[1]
    if count == 2:
        named, more = more == more.max(), 2 * more
    else:
        named = (excess >= NOTABLE / 2).mean(axis=0) >= MOST_RUNS
    named &= more >= NOTABLE
    if count > 2 and named.any():
        named &= chances([run.blocks for run in runs]) <= CHANCE
        logs = np.mean([np.log(run.slow) for run in runs], axis=0)
        away = np.abs(logs - np.median(logs))
        named &= (count < FAR_FROM) | (away > FAR * MAD_TO_STD * np.median(away))
    slow = [_slow(runs, int(place), float(more[place])) for place in np.flatnonzero(named)]
    kept = [each for each in slow if each.sure or (count > 2 and len(runs) < 3)]
    return sorted(kept, key=lambda each: -each.ratio.value)


def _slow(runs: Sequence[RankTimes], place: int, excess: float) -> Slow:
    over = [run.medians[1 - place] if run.medians.size == 2 else None for run in runs]
    ratios = [
        run.slow[place] if other is None else run.medians[place] / other
        for run, other in zip(runs, over, strict=True)
    ]
    return Slow(place, mean_of(ratios), excess)


def chances(blocks: Sequence[Floats]) -> Floats:
    """How often chance makes any rank as slow as each of them was: a permutation test of the
    maximum, which pays for the choice of the slowest.

    ``blocks``: medians ``[block, rank]`` of each run. If no rank is special, every order of the
    ranks in a block is as likely.
    """
    most = max(1, UNITS // len(blocks))
    units = np.concatenate([
        [part.mean(axis=0) for part in np.array_split(logs, min(len(logs), most))]
        for logs in (np.log(each / np.median(each, axis=1, keepdims=True)) for each in blocks)
    ])  # fmt: skip
    draw = np.random.default_rng(SEED)
    highest = [draw.permuted(units, axis=1).mean(axis=0).max() for _ in range(SHUFFLES)]
    beaten = (np.array(highest)[:, None] >= units.mean(axis=0)[None, :] - 1e-12).sum(axis=0)
    return np.asarray((1 + beaten) / (1 + SHUFFLES), np.float64)
