"""The rule on drift: whether the machine changed while a campaign ran."""

import math

from scalesweep.analysis.drift import LEAST_RUNS, trend
from scalesweep.core.formatting import PHASES
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.experiment.timeline import timeline
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    OPEN,
    Finding,
    Number,
    Rule,
    counts_of,
    number_of,
)

RULE = "drift"
# Without a control: repeats that a point needs, and runs that there must be beyond the points.
LEAST_REPEATS, LEAST_MORE = 3, 10


def drift(results: ExperimentResults) -> list[Finding]:
    """Whether runs change with time, each against the others of its point: of the control point
    always something, of other experiments only drift that is there."""
    main, line = results.main, timeline(results)
    if main is None or not line.times:
        return []
    points: dict[Key, list[int]] = {}
    for place, row in enumerate(line.rows):
        points.setdefault(results.key(row, results.axes), []).append(place)
    groups = [p for p in points.values() if results.control or len(p) >= LEAST_REPEATS]
    kept = [(place, group) for group, places in enumerate(groups) for place in places]
    if not results.control and len(kept) < len(groups) + 1 + LEAST_MORE:
        return []
    fitted = trend(
        [line.times[place] for place, _ in kept],
        [line.logs[place] for place, _ in kept],
        [group for _, group in kept],
    )
    numbers: tuple[Number, ...]
    if fitted is None:
        state = OPEN
        numbers = counts_of(runs=len(kept), needed=LEAST_RUNS)
    else:
        state = ATTENTION if fitted.clear else NOTE
        ends = (math.expm1(end) for end in (fitted.change, fitted.low, fitted.high))
        hours = number_of("hours", fitted.span_s / 3600, "h")
        numbers = hours, number_of("change", next(ends), "1", *ends)
    if state != ATTENTION and not results.control:
        return []
    flags = (f"{len(line.hosts)} sets of hosts",) if len(line.hosts) > 1 else ()
    what = "The control point drifts" if results.control else "Runs of the same points drift"
    return [
        Finding(
            results.name, RULE, state, numbers=numbers, flags=flags,
            subject=what if state == ATTENTION else "",
            words={"metric": f"{main.label.lower()} ({PHASES[main.steady_phase]})"},
            evidence={"table": "runs", "key": {}},
        )
    ]  # fmt: skip


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
