"""What makes a rank late in a run's steps: delays by cause and pattern, and steps without them.

A delay is what a rank takes longer than the ranks in the middle (the lower median over the ranks
in each step: of two the faster one), or than itself in its other steps. Patterns:

    every        in (nearly) every step
    part         in one part of the run
    alternating  in most steps, on another rank each time
    rare         in a third of the steps at most: stalls
    often        in more of them, without a pattern
    bound        waiting for an input pipeline that sets the pace of a rank

``without`` replays the steps: the seconds of a delay are taken away from the ranks that had them,
and each step then lasts as long as its last rank needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.step_work import BETWEEN, CAUSES, INPUT, TRANSFER, StepWork
from scalesweep.analysis.types import Floats

Bools = NDArray[np.bool_]

EVERY, PART, ALTERNATING, RARE, OFTEN = "every", "part", "alternating", "rare", "often"
BOUND = "bound"

# Fewer steps than this have no pattern.
FEWEST_STEPS = 8
# What is shorter than these shares of a step is no delay: of one that lasts, of a single one.
LASTING_FROM, SINGLE_FROM = 0.02, 0.05
# A class of longer steps is set apart by so many standard deviations of the others, and by a gap.
APART, GAP = 6.0, 3.0
GAP_SHARE = 0.1
USUAL = 0.1  # share of the steps that are not longer than usual, at least
# Shares of all steps: all of them, stalls at most, of a part the least and how full it is.
ALL, STALLS, LEAST_PART, FULL = 0.95, 1 / 3, 0.1, 0.9
NEARLY_ALL = 0.85  # of the steps: what is longer than half of a delay in every step
MOST_OF = 0.8
# Delays are of one kind if they are within this factor of each other.
ALIKE = 2.5
# Of the rank that has most of a delay: ranks that have less do not have it.
MAIN = 0.1
# Of its ranks so many have a delay at once that is of the same ones each time.
TOGETHER = 0.75
_SMOOTH = 5
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
        """The ranks that have it, those with the most first: a tenth of the most at least."""
        of_rank = self.extra.sum(axis=0)
        order = np.argsort(-of_rank, kind="stable")
        least = MAIN * float(of_rank.max())
        return [int(rank) for rank in order if of_rank[rank] > 0 and of_rank[rank] >= least]

    @property
    def steps(self) -> Bools:
        """Which steps have it, ``[step]``."""
        return np.asarray((self.extra > 0).any(axis=1))

    @property
    def at_once(self) -> float:
        """How many of its ranks have it in a step that has it, on average."""
        late = (self.extra[:, self.ranks] > 0).sum(axis=1)
        return float(late[late > 0].mean())

    @property
    def moves(self) -> bool:
        """Whether it is another rank's from step to step: of ranks that have it together it is
        not."""
        return self.pattern == ALTERNATING or (
            self.pattern == OFTEN and self.at_once < TOGETHER * len(self.ranks)
        )

    @property
    def lengths(self) -> Floats:
        """Seconds of it on its ranks in the steps that have it, one after the other."""
        extra = self.extra[:, self.ranks]
        return np.asarray(extra[extra > 0])


def lower_median(values: Floats, axis: int = 0) -> Floats:
    """The middle value along an axis, of two the lower: one late rank of two is an imbalance."""
    ordered = np.sort(values, axis=axis)
    return np.asarray(np.take(ordered, (values.shape[axis] - 1) // 2, axis=axis), np.float64)


def delays_of(work: StepWork) -> list[Delay]:
    """The delays of a run's ranks, by cause; those of the exchange itself too."""
    steps, ranks = work.shape
    if steps < FEWEST_STEPS:
        return []
    typical = float(np.median(work.periods))
    if typical <= 0:
        return []
    delays = []
    for cause in CAUSES:
        seconds = work.causes.get(cause)
        if seconds is not None and seconds.max() >= LASTING_FROM * typical:
            delays += _of_cause(cause, seconds, typical)
    together = stalls_of(work.transfer, typical)
    if together.any():
        spread = np.repeat(together[:, None], ranks, axis=1)
        delays.append(Delay(TRANSFER, RARE, spread))
    return delays


def without(work: StepWork, delays: Iterable[Delay], bound: Sequence[int] = ()) -> StepWork:
    """The steps without delays. Ranks in ``bound`` are limited by their input: what they gain
    elsewhere they wait for it."""
    delays = list(delays)
    if any(delay.pattern == BOUND for delay in delays):
        bound = ()  # nobody waits for input then
    for delay in delays:
        work = work.without(delay.cause, delay.extra)
        if bound and delay.cause not in (INPUT, TRANSFER):
            back = np.zeros(delay.extra.shape)
            back[:, list(bound)] = delay.extra[:, list(bound)]
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


@dataclass(frozen=True)
class Causes:
    """What makes a run's steps longer, each apart, and the ranks whose pace their input sets."""

    delays: list[Delay]
    bound: list[int]


def causes_of(work: StepWork) -> Causes:
    """What a run could be without: host activities that have a name, host time between the steps
    of all ranks, waiting for input of ranks whose pace it sets, and delays."""
    causes = []
    rest = work
    for name in work.named:
        seconds = rest.causes[name]
        if seconds.any():
            causes.append(Delay(name, _named_pattern(seconds), seconds))
        rest = rest.without(name, seconds)
    steps, ranks = work.shape
    typical = float(np.median(work.periods))
    for delay in _between_all(rest.causes[BETWEEN], typical):
        causes.append(delay)
        rest = rest.without(BETWEEN, delay.extra)
    bound = bound_by_input(rest)
    if bound:
        extra = np.zeros((steps, ranks))
        extra[:, bound] = rest.causes[INPUT][:, bound]
        causes.append(Delay(INPUT, BOUND, extra))
    causes += [delay for delay in delays_of(rest) if not waits_for_input(delay, bound)]
    return Causes(causes, bound)


def _between_all(seconds: Floats, typical: float) -> list[Delay]:
    """What all ranks, or most, spend between their steps ``[step, rank]``: in every step, which is
    what a rank spends in its usual ones, and in more steps than stalls are."""
    usual = np.stack([_between_stalls(own, LASTING_FROM * typical) for own in seconds.T], axis=1)
    host = lower_median(usual, axis=1)[:, None]
    if _in_every_step(host[:, 0], LASTING_FROM * typical):
        delays = [Delay(BETWEEN, EVERY, np.minimum(seconds, followed(host[:, 0])[:, None]))]
    else:
        delays = []
    common = lower_median(seconds, axis=1)
    for above in _classes(common, SINGLE_FROM * typical)[0]:
        if above.mean() > STALLS:
            longer = np.maximum(seconds - np.maximum(usual, host), 0.0)
            extra = np.where(above[:, None] & (longer >= SINGLE_FROM * typical), longer, 0.0)
            first, last = np.flatnonzero(above)[[0, -1]]
            pattern = PART if above[first : last + 1].mean() >= ALL else OFTEN
            delays.append(Delay(BETWEEN, pattern, extra))
    return [delay for delay in delays if delay.extra.any()]


def _between_stalls(own: Floats, least: float) -> Floats:
    """Values without classes of longer ones, which get the median of the others."""
    usual = _classes(own, least)[1]
    return np.asarray(np.where(usual, own, np.median(own[usual])))


def waits_for_input(delay: Delay, bound: Sequence[int]) -> bool:
    """Whether a delay is what ranks wait for input whose pace it sets."""
    return delay.cause == INPUT and delay.pattern != RARE and bool(set(delay.ranks) & set(bound))


def _named_pattern(seconds: Floats) -> str:
    there = seconds > 0
    share, of_rank = float(there.any(axis=1).mean()), there.mean(axis=0)
    if share < ALL:
        return RARE if share <= STALLS else OFTEN
    # In every step, but of no rank that has it in most of them.
    return ALTERNATING if of_rank.max() < MOST_OF else EVERY


def _of_cause(cause: str, seconds: Floats, typical: float) -> list[Delay]:
    """Delays ``[step, rank]`` of one cause."""
    steps, ranks = seconds.shape
    common = lower_median(seconds, axis=1)
    delays = []
    together = stalls_of(common, typical)
    if together.any():
        # Of each rank, what is longer than its own usual steps: one may be behind in all of them.
        stalled = together > 0
        usual = np.stack(
            [_usual(np.where(stalled, np.median(own[~stalled]), own)) for own in seconds.T], axis=1
        )
        longer = np.where(stalled[:, None], seconds - usual, 0.0)
        extra = np.where(longer >= SINGLE_FROM * typical, longer, 0.0)
        if extra.any():
            delays.append(Delay(cause, RARE, extra))
        seconds = seconds - extra
        common = lower_median(seconds, axis=1)
    late = seconds - common[:, None]
    # Where half of the ranks are late, ``common`` is the latest of the others in each step, by
    # chance, and all of these seem early: nobody is then late by as little as it shows.
    usual = np.clip(late, -SINGLE_FROM * typical, SINGLE_FROM * typical).mean(axis=0)
    late -= min(0.0, float(lower_median(usual)))
    lasting: dict[str, Floats] = {}
    single: list[tuple[float, int, Floats]] = []
    for rank in range(ranks) if ranks > 1 else ():
        own = late[:, rank]
        if own.max() < LASTING_FROM * typical:
            continue
        pattern, level = _lasting(own, typical)
        if pattern:
            spread = lasting.setdefault(pattern, np.zeros((steps, ranks)))
            spread[:, rank] = level
        for extra in _extras(own - level, SINGLE_FROM * typical):
            single.append((float(np.median(extra[extra > 0])), rank, extra))
    delays += [Delay(cause, pattern, extra) for pattern, extra in lasting.items()]
    return delays + _sporadic(cause, single, (steps, ranks))


def stalls_of(common: Floats, typical: float) -> Floats:
    """What a few steps take longer than those around them, ``[step]``; 0 for all others."""
    if len(common) < FEWEST_STEPS:
        return np.zeros(len(common))
    usual = _usual(common)
    stalls = np.zeros(len(common))
    for extra in _extras(common - usual, SINGLE_FROM * typical):
        if (extra > 0).mean() <= STALLS:
            stalls += extra
    for ordered, extra in ((common, stalls), (common[::-1], stalls[::-1])):
        count = int((extra > 0).argmin())  # stalls at the beginning, then at the end
        if count > 1 and ordered[count - 1] - ordered[count] < extra[:count].max() / 2:
            extra[:count] = 0.0  # steps that get shorter, or longer, little by little
    return stalls


def _usual(values: Floats) -> Floats:
    """The median of the steps around each."""
    return _running_median(values, min(len(values), max(7, len(values) // 4)) | 1)


def _running_median(values: Floats, width: int) -> Floats:
    """The median of ``width`` (odd) values around each, which are mirrored at the ends.

    In NumPy: SciPy, which has it too, takes as long to import as a summary takes to make.
    """
    half = min(width // 2, len(values) - 1)
    padded = np.pad(values, half, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(np.median(windows, axis=1), np.float64)


def _lasting(own: Floats, typical: float) -> tuple[str, Floats]:
    """The pattern of a rank that is late in most of its steps or in a part of them ("": neither),
    and how late it is, ``[step]``."""
    steps, least = len(own), LASTING_FROM * typical
    smooth = _running_median(own, _SMOOTH)
    on = _upper(smooth, least)
    if on is not None:
        share = float(on.mean())
        places = np.flatnonzero(on)
        first, last = int(places[0]), int(places[-1]) + 1
        if share < ALL and on[first:last].mean() >= FULL and last - first >= LEAST_PART * steps:
            level = np.zeros(steps)
            outside = float(np.median(own[~on]))
            level[first:last] = float(np.median(own[first:last])) - outside
            if outside >= least:  # late everywhere, and more so in a part
                return EVERY, np.maximum(level + outside, 0.0)
            if level[first] >= least:
                return PART, level
    # Single long steps, or every other one, do not make a rank late in every step.
    return (EVERY, followed(own)) if _in_every_step(own, least) else ("", np.zeros(steps))


def _in_every_step(own: Floats, least: float) -> bool:
    middle = float(np.median(own))
    return middle >= least and float((own > middle / 2).mean()) >= NEARLY_ALL


def followed(own: Floats) -> Floats:
    """Values as they change over a run, without the scatter of steps; none below 0."""
    width = min(len(own), max(_SMOOTH, len(own) // 4)) | 1
    return np.maximum(_running_median(own, width), 0.0)


def _extras(values: Floats, least: float) -> list[Floats]:
    """What single values are above the usual ones, by class of about the same length, ``[step]``
    each and 0 for the others."""
    classes, usual = _classes(values, least)
    base = max(float(np.median(values[usual])), 0.0)  # a few short steps make no others long
    extras = [
        np.where(above, np.maximum(values - base, 0.0), 0.0)
        for above in classes if float(np.median(values[above])) - base >= least
    ]  # fmt: skip
    return [extra for extra in extras if extra.any()]


def _classes(values: Floats, least: float) -> tuple[list[Bools], Bools]:
    """Classes of longer values, and which values are in none of them: the usual ones."""
    classes = []
    rest = np.ones(len(values), bool)
    for _ in range(3):
        on = _upper(values[rest], least)
        if on is None:
            break
        above = np.zeros(len(values), bool)
        above[np.flatnonzero(rest)[on]] = True
        classes.append(above)
        rest &= ~above
    return classes, rest


def _upper(values: Floats, least: float) -> Bools | None:
    """Which values are a class of their own above the others; None where none is.

    The cut is Otsu's, which leaves the least variance within the two classes. The upper class has
    to lie above the lower one by ``least`` and by six of its standard deviations (from the median
    absolute deviation), with a gap between the two.
    """
    count = len(values)
    if count <= FEWEST_STEPS // 2:
        return None
    order = np.sort(values)
    if order[-1] - order[0] < least:
        return None
    sums = np.cumsum(order)
    below = np.arange(1, count)
    low, high = sums[:-1] / below, (sums[-1] - sums[:-1]) / (count - below)
    # A few short steps are no usual ones, above which all others are long.
    fewest = max(FEWEST_STEPS // 2, int(np.ceil(USUAL * count))) - 1
    cut = fewest + int((below * (count - below) * (high - low) ** 2)[fewest:].argmax())
    lower = order[: cut + 1]
    noise = MAD_TO_STD * float(np.median(np.abs(lower - np.median(lower))))
    apart = float(high[cut] - low[cut])
    gap = float(order[cut + 1] - order[cut])
    if apart < max(least, APART * noise) or gap < max(GAP_SHARE * apart, GAP * noise):
        return None
    return np.asarray(values > (order[cut] + order[cut + 1]) / 2)


def _sporadic(
    cause: str, single: list[tuple[float, int, Floats]], shape: tuple[int, int]
) -> list[Delay]:
    """Single delays of all ranks, those of about the same length together."""
    delays: list[Delay] = []
    group: list[tuple[float, int, Floats]] = []

    def close() -> None:
        if not group:
            return
        extra = np.zeros(shape)
        for _, rank, values in group:
            extra[:, rank] += values
        delays.append(Delay(cause, _pattern(extra), extra))
        group.clear()

    for entry in sorted(single, key=lambda entry: entry[0]):
        if group and entry[0] > ALIKE * group[0][0]:
            close()
        group.append(entry)
    close()
    return delays


def _pattern(extra: Floats) -> str:
    """The pattern of single delays ``[step, rank]``."""
    late = extra > 0
    share = float(late.any(axis=1).mean())
    if share <= STALLS:
        return RARE
    several = int((late.mean(axis=0) > (1 - MOST_OF) * share / late.shape[1]).sum()) > 1
    alone = float(late.mean(axis=0).max())
    return ALTERNATING if several and share >= MOST_OF and alone < MOST_OF * share else OFTEN
