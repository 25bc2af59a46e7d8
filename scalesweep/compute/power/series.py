"""From values that were read to joules over time.

Standard library only. Times are seconds on a host's own axis: its monotonic clock, put to Unix time
once, at the first sample, so that a step of the clock stretches no interval.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from scalesweep.compute.power.domains import WATCHED, Domain

# What no part of a machine draws, in watts. It tells a counter that was set back from one that
# wrapped, and how often a counter may have wrapped between two readings.
MAX_WATTS = {
    "node": 100_000.0,
    "psys": 20_000.0,
    "package": 2_000.0,
    "dram": 1_000.0,
    "core": 2_000.0,
    "uncore": 2_000.0,
    "gpu": 5_000.0,
    "other": 100_000.0,
}
# Counters are refreshed this often at least (pm_counters: ten times a second), so a difference may
# hold that much more than the time between the readings.
REFRESH_S = 0.25
# So a counter that shows the same value for so many seconds, and so many intervals, does not count:
# nothing that is on draws no power.
STILL_S, STILL = 2.0, 2.0
_MAY_REST = frozenset({"core", "uncore", "other"})  # parts of one that is on
_CLOSE = 0.95  # of a time: samples are not taken to the millisecond


@dataclass(frozen=True)
class Gap:
    """A time of which nothing is known, and why."""

    start: float
    end: float
    why: str


@dataclass
class Series:
    """Joules of a domain since its first value, at the time of each value; ``watts`` where known.

    Of a counter ``watts`` is the mean of the interval that ends there, of a sensor its value.
    """

    times: list[float] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)
    watts: list[float | None] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def at(self, time: float) -> float:
        """Joules at a time, linear between values (constant before the first, after the last)."""
        if not self.times or time <= self.times[0]:
            return 0.0
        if time >= self.times[-1]:
            return self.joules[-1]
        i = bisect_right(self.times, time)
        left, right = self.times[i - 1], self.times[i]
        part = (time - left) / (right - left)
        return self.joules[i - 1] + part * (self.joules[i] - self.joules[i - 1])

    def between(self, start: float, end: float) -> float:
        """Joules from ``start`` to ``end``, as far as they are known (``known_s``)."""
        return self.at(end) - self.at(start)

    def known_s(self, start: float, end: float) -> float:
        """Seconds between ``start`` and ``end`` in which the domain was watched."""
        if not self.times:
            return 0.0
        known = _overlap(start, end, self.times[0], self.times[-1])
        return known - sum(_overlap(start, end, gap.start, gap.end) for gap in self.gaps)


def _overlap(start: float, end: float, left: float, right: float) -> float:
    return max(0.0, min(end, right) - max(start, left))


def series_of(domain: Domain, values: Iterable[tuple[float, float]], interval_s: float) -> Series:
    """The series of a domain, from its values by time (in order; no two at the same time)."""
    known: Sequence[tuple[float, float]] = list(values)
    stopped = _stopped(domain, known, interval_s)
    series = Series()
    total = 0.0
    before: tuple[float, float] | None = None
    for time, value in known:
        watts: float | None = value * domain.unit if domain.kind == "power" else None
        if before is not None:
            seconds = time - before[0]
            if seconds <= 0:
                continue
            step, why = (
                (None, stopped[time])
                if time in stopped
                else _counted(domain, value - before[1], seconds)
                if domain.kind == "counter"
                else _trapezoid(domain, before[1] + value, seconds, interval_s)
            )
            if step is None:
                series.gaps.append(Gap(before[0], time, why))
            else:
                total += step
                watts = step / seconds if domain.kind == "counter" else watts
        series.times.append(time)
        series.joules.append(total)
        series.watts.append(watts)
        before = (time, value)
    return series


def _stopped(
    domain: Domain, values: Sequence[tuple[float, float]], interval_s: float
) -> dict[float, str]:
    """Times until which a counter that has counted, or will, showed one value for longer than any
    that counts, and what is said of it."""
    starts = [0, *(i for i in range(1, len(values)) if values[i][1] != values[i - 1][1])]
    if domain.kind != "counter" or domain.part in _MAY_REST or len(starts) < 2:
        return {}  # it never changes, or may be switched off
    least = _CLOSE * max(STILL_S, STILL * interval_s)
    reasons: dict[float, str] = {}
    for first, after in zip(starts, [*starts[1:], len(values)], strict=True):
        seconds = values[after - 1][0] - values[first][0]
        if seconds >= least:
            why = f"the counter stood still for {seconds:.1f} s"
            reasons |= {time: why for time, _ in values[first + 1 : after]}
    return reasons


def _counted(domain: Domain, difference: float, seconds: float) -> tuple[float | None, str]:
    """Joules that a counter has counted, or None and why it is unknown.

    A counter that wraps gives the true difference up to a multiple of its range. Exactly one of
    these must be a power that is possible at all.
    """
    most = MAX_WATTS[domain.part] * (seconds + REFRESH_S)
    if domain.wrap is None:
        joules = difference * domain.unit
    else:
        joules = difference % domain.wrap * domain.unit
        if joules + domain.wrap * domain.unit <= most:
            return None, (
                f"not read for {seconds:.0f} s, in which it may have wrapped several times: its "
                f"range is {domain.wrap * domain.unit:.3g} J"
            )
    if joules < 0 or joules > most:
        return None, "the counter was set back" if difference < 0 else "the counter jumped"
    return joules, ""


def _trapezoid(
    domain: Domain, total: float, seconds: float, interval_s: float
) -> tuple[float | None, str]:
    """Joules between two values of a sensor whose sum is ``total``."""
    if seconds > WATCHED * max(interval_s, 0.5):
        return None, f"no value for {seconds:.0f} s"
    return total / 2 * domain.unit * seconds, ""
