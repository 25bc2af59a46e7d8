"""The rule on drift: whether the machine changed while a campaign ran."""

import math
from collections.abc import Sequence

from scalesweep.analysis.drift import LEAST_RUNS, Trend, trend
from scalesweep.core.formatting import PHASES
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.experiment.timeline import Timeline, timeline
from scalesweep.findings.base import ATTENTION, NOTE, OPEN, Finding, Number, Rule, number_of

RULE = "drift"
# Without a control: repeats that a point needs, and runs that there must be beyond the points.
LEAST_REPEATS, LEAST_MORE = 3, 10


def drift(results: ExperimentResults) -> list[Finding]:
    """Of the control point always something; of other experiments only drift that is there."""
    main = results.main
    if main is None:
        return []
    line = timeline(results)
    return _of_control(results, main, line) if results.control else _of_repeats(results, main, line)


def _of_control(results: ExperimentResults, main: Measure, line: Timeline) -> list[Finding]:
    """The control point's trend."""
    runs = len(line.times)
    if runs == 0:
        return []
    steady = trend(line.times, line.logs)
    if steady is None:
        counts = number_of("runs", runs, "1"), number_of("needed", LEAST_RUNS, "1")
        return [_finding(results, main, OPEN, "", counts)]
    if steady.clear:
        return [_finding(results, main, ATTENTION, "The control point drifts", _numbers(steady))]
    return [_finding(results, main, NOTE, "", _numbers(steady))]


def _of_repeats(results: ExperimentResults, main: Measure, line: Timeline) -> list[Finding]:
    """Drift of all runs of an experiment, each against the others of its point."""
    points: dict[Key, list[int]] = {}
    for place, row in enumerate(line.rows):
        points.setdefault(results.key(row, results.axes), []).append(place)
    groups = [places for places in points.values() if len(places) >= LEAST_REPEATS]
    kept = [(place, group) for group, places in enumerate(groups) for place in places]
    if len(kept) < len(groups) + 1 + LEAST_MORE:
        return []
    drift = trend(
        [line.times[place] for place, _ in kept],
        [line.logs[place] for place, _ in kept],
        [group for _, group in kept],
    )
    if drift is None or not drift.clear:
        return []
    return [_finding(results, main, ATTENTION, "Runs of the same points drift", _numbers(drift))]


def _numbers(drift: Trend) -> tuple[Number, ...]:
    ends = (math.expm1(end) for end in (drift.change, drift.low, drift.high))
    return number_of("hours", drift.span_s / 3600, "h"), number_of("change", next(ends), "1", *ends)


def _finding(
    results: ExperimentResults, main: Measure, state: str, what: str, numbers: Sequence[Number]
) -> Finding:
    words = {"metric": f"{main.label.lower()} ({PHASES[main.steady_phase]})"}
    evidence = {"table": "runs", "key": {}}
    flags = (f"{len(hosts)} sets of hosts",) if len(hosts := timeline(results).hosts) > 1 else ()
    return Finding(
        results.name, RULE, state, "", evidence, tuple(numbers), subject=what, words=words,
        flags=flags,
    )  # fmt: skip


RULES = (
    Rule(
        RULE, drift,
        says={
            OPEN: "Too few control runs to see drift: {runs}, of {needed} needed.",
            NOTE: "Change of {metric} at the control point over {hours}: {change:%}.",
            ATTENTION: "{subject}: {metric} changes by {change:%}.",
        },
        next={ATTENTION: "trust no difference between points that is smaller than this"},
    ),
)  # fmt: skip
