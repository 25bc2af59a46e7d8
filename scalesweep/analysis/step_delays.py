"""What makes ranks late in a run's steps: delays by cause, and the steps without them.

Two patterns, of the seconds ``w[step, rank]`` of one cause:

    single steps   w is more than a rank's usual w by 5 % of a step and by six robust standard
                   deviations, in at most half of the rank's steps
    every step     w, without what single steps have, is more than the lower median of the other
                   ranks: in the median step by 2 % of a step, and by half of that in 85 % of them

``without`` replays the steps: the seconds of a delay are taken away from the ranks that had them,
and each step then lasts as long as its last rank needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.step_work import CAUSES, INPUT, TRANSFER, StepWork
from scalesweep.analysis.types import Floats

EVERY, SINGLE = "every step", "single steps"
# Fewer steps than this have no pattern.
FEWEST_STEPS = 8
# What is shorter than these shares of a step is no delay: of every step, of single ones.
LASTING_FROM, SINGLE_FROM = 0.02, 0.05
APART = 6.0  # standard deviations of the usual steps
MOST_SINGLE, STALLS = 0.5, 1 / 3  # of the steps: single ones of a rank; stalls of any rank
NEARLY_ALL = 0.85  # of the steps that have a delay of every step
MAIN = 0.1  # of the rank that has most of a delay: ranks that have less do not have it
_ROUNDS = 20
# A rank's input makes up for what it does otherwise: slope and correlation of the two.
_SLOPE, _CORRELATION = (-1.4, -0.6), -0.5
_FEWEST_BOUND = 20
# With the wait for it, the time from batch to batch scatters less than without, by this at most.
_STEADIER = 1.1


@dataclass(frozen=True)
class Delay:
    """What one cause makes ranks take longer: ``extra[step, rank]`` in s, 0 elsewhere."""

    cause: str
    pattern: str
    extra: Floats

    @property
    def ranks(self) -> list[int]:
        """The ranks that have it: a tenth of the rank that has most of it, at least."""
        of_rank = self.extra.sum(axis=0)
        return [int(r) for r in np.flatnonzero((of_rank > 0) & (of_rank >= MAIN * of_rank.max()))]

    @property
    def steps(self) -> list[int]:
        """The steps that have it, from 0."""
        return [int(step) for step in np.flatnonzero((self.extra > 0).any(axis=1))]

    @property
    def seconds(self) -> float:
        """How long it is where it is, median over steps and ranks that have it."""
        extra = self.extra[:, self.ranks]
        return float(np.median(extra[extra > 0]))

    @property
    def stalls(self) -> bool:
        """Whether it is in single steps that are few: with more of them it is jitter."""
        return self.pattern == SINGLE and len(self.steps) <= STALLS * len(self.extra)


def lower_median(values: Floats, axis: int = 0) -> Floats:
    """The middle value along an axis, of two the lower: one late rank of two is an imbalance."""
    ordered = np.sort(values, axis=axis)
    return np.asarray(np.take(ordered, (values.shape[axis] - 1) // 2, axis=axis), np.float64)


def beyond_others(seconds: Floats) -> Floats:
    """What each rank takes more than the lower median of the others, ``[step, rank]``."""
    ranks = seconds.shape[1]
    order = np.argsort(seconds, axis=1, kind="stable")
    place = np.argsort(order, axis=1)
    ordered, middle = np.take_along_axis(seconds, order, axis=1), (ranks - 2) // 2
    others = np.where(place <= middle, ordered[:, [middle + 1]], ordered[:, [middle]])
    return np.asarray(seconds - others, np.float64)


def single_steps(values: Floats, least: float) -> Floats:
    """What single ``values[step]`` are above the usual ones, by ``least`` or more; 0 elsewhere.

    Usual are those within six robust standard deviations of their own median, beginning with the
    lower half of their range.
    """
    nothing = np.zeros(len(values))
    low, high = float(np.quantile(values, 0.1)), float(values.max())
    if len(values) < FEWEST_STEPS or high - low < least:
        return nothing
    usual, base = values <= (low + high) / 2, low
    for _ in range(_ROUNDS):
        base = float(np.median(values[usual]))
        noise = MAD_TO_STD * float(np.median(np.abs(values[usual] - base)))
        grown = values <= base + max(least, APART * noise)
        if (grown == usual).all():
            break
        usual = grown
    return nothing if (~usual).mean() > MOST_SINGLE else np.where(usual, 0.0, values - base)


def delays_of(work: StepWork, bound: Sequence[int] = ()) -> list[Delay]:
    """The delays of a run's ranks, by cause; of the exchange itself too.

    Ranks in ``bound`` wait for their input as long as nothing else holds them: that is none.
    """
    steps, ranks = work.shape
    typical = float(np.median(work.periods)) if steps else 0.0
    if steps < FEWEST_STEPS or typical <= 0:
        return []
    delays = []
    for cause in (*CAUSES, TRANSFER):
        exchange = np.repeat(work.transfer[:, None], ranks, axis=1)
        seconds = exchange if cause == TRANSFER else work.causes.get(cause)
        if seconds is None or seconds.max() < LASTING_FROM * typical:
            continue
        single = np.stack([single_steps(own, SINGLE_FROM * typical) for own in seconds.T], axis=1)
        lasting = np.zeros(work.shape)
        if ranks > 1 and cause != TRANSFER:
            lasting = _lasting(seconds - single, typical)
        for pattern, extra in ((EVERY, lasting), (SINGLE, single)):
            extra[:, list(bound) if cause == INPUT else []] = 0.0
            delays.append(Delay(cause, pattern, extra))
    return [delay for delay in delays if delay.extra.any()]


def _lasting(seconds: Floats, typical: float) -> Floats:
    """What ranks take longer in every step, ``[step, rank]``: as much in each."""
    late = beyond_others(seconds)
    level = np.median(late, axis=0)
    held = (late > level / 2).mean(axis=0) >= NEARLY_ALL
    level = np.where(held & (level >= LASTING_FROM * typical), level, 0.0)
    return np.tile(level, (len(seconds), 1))


def causes_of(work: StepWork) -> tuple[list[Delay], list[int]]:
    """What a run could be without: delays, and waiting for input that sets the pace of ranks, which
    are given too."""
    bound = bound_by_input(work)
    delays = delays_of(work, bound)
    if bound:
        late = [delay for delay in delays if (delay.cause, delay.pattern) == (INPUT, EVERY)]
        extra = late[0].extra if late else np.zeros(work.shape)
        extra[:, bound] = work.causes[INPUT][:, bound]
        delays += [] if late else [Delay(INPUT, EVERY, extra)]
    return delays, bound


def without(work: StepWork, delays: Iterable[Delay], bound: Sequence[int] = ()) -> StepWork:
    """The steps without delays. Ranks in ``bound`` are limited by their input: what they gain
    elsewhere they wait for it, unless that goes too."""
    delays, ranks = list(delays), list(bound)
    waits = work.causes[INPUT][:, ranks]
    if any(d.cause == INPUT and (d.extra[:, ranks] == waits).all() for d in delays):
        ranks = []
    for delay in delays:
        work = work.without(delay.cause, delay.extra)
        if ranks and delay.cause not in (INPUT, TRANSFER):
            back = np.zeros(delay.extra.shape)
            back[:, ranks] = delay.extra[:, ranks]
            work = work.without(INPUT, -back)
    return work


def gain(work: StepWork, delays: Sequence[Delay], bound: Sequence[int] = ()) -> float:
    """Seconds per step that a run would be faster without delays, by replay of its steps."""
    return float((work.periods - without(work, delays, bound).periods).mean())


def bound_by_input(work: StepWork) -> list[int]:
    """Ranks whose input pipeline sets their pace: they wait for it by as much less as they do
    anything else for longer (a slope of -1 of the one over the other, step by step)."""
    reading = work.causes[INPUT]
    if len(reading) < _FEWEST_BOUND:
        return []
    others = work.own - reading
    # What a rank did since it was given the batch before.
    since = (others + work.exchange)[:-1]
    waits = reading[1:]
    least = LASTING_FROM * float(np.median(work.periods))
    bound = []
    for rank in range(reading.shape[1]):
        # A rank that read for longer waited less in the exchange after it: what the wait before
        # explains of both is taken out, or reading that wanders would look like a pipeline.
        before = reading[:-1, rank]
        x, y = _without_line(since[:, rank], before), _without_line(waits[:, rank], before)
        if waits[:, rank].mean() < least or x.std() == 0 or y.std() == 0:
            continue
        if (since + waits)[:, rank].std() > _STEADIER * since[:, rank].std():
            continue  # a pipeline makes up for what took longer: reading that has its own turns
        correlation = float(np.corrcoef(x, y)[0, 1])
        slope = correlation * float(y.std() / x.std())
        if correlation <= _CORRELATION and _SLOPE[0] <= slope <= _SLOPE[1]:
            bound.append(rank)
    return bound


def _without_line(values: Floats, by: Floats) -> Floats:
    """What a straight line over ``by`` leaves of values."""
    centred = by - by.mean()
    spread = float((centred**2).sum())
    slope = float((centred * values).sum()) / spread if spread > 0 else 0.0
    return np.asarray(values - values.mean() - slope * centred, np.float64)
