"""Findings on drift: whether the machine changed while a campaign ran."""

import math

from scalesweep.analysis.drift import LEAST_RUNS, Trend, clearer_jump, trend
from scalesweep.core.formatting import PHASES, counted, duration, percent
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.experiment.timeline import Timeline, moment, timeline
from scalesweep.findings.base import NOTE, OPEN, WARNING, Finding

RULE = "drift"
# Without a control: repeats that a point needs, and runs that there must be beyond the points.
LEAST_REPEATS, LEAST_MORE = 3, 10
_DOUBT = "differences between points smaller than that may be drift"


def drift(results: ExperimentResults) -> list[Finding]:
    """Of the control point always something; of other experiments only drift that is there."""
    main = results.main
    if main is None:
        return []
    line = timeline(results)
    return _of_control(results, main, line) if results.control else _of_repeats(results, main, line)


def _of_control(results: ExperimentResults, main: Measure, line: Timeline) -> list[Finding]:
    """The control point's trend or jump, whichever its runs lie closer to."""
    runs = len(line.times)
    if runs == 0:
        return []
    steady = trend(line.times, line.logs)
    if steady is None:
        text = (
            f"Too few control runs to detect drift: {runs} of "
            f"{counted(len(results.entry['runs']), 'run')} measured, {LEAST_RUNS} are needed."
        )
        return [_finding(results, OPEN, text, {"runs": runs})]
    label = _label(main)
    over = f"over {duration(steady.span_s)}"
    span = f"{over} ({counted(runs, 'run')})"
    sudden = clearer_jump(line.logs, steady, line.sessions)
    if sudden is not None:
        level = WARNING
        text = (
            f"The control point jumps: {label} is {_size(sudden.change, main, 'higher', 'lower')} "
            f"from {moment(line.times[sudden.place])} on"
            f"{', where a session begins' if sudden.place in line.sessions else ''}, in "
            f"{runs - sudden.place} of {counted(runs, 'run')} {over}; {_DOUBT}."
        )
    elif steady.clear:
        level = WARNING
        text = f"The control point drifts: {label} {_changed(steady, main)} {span}; {_DOUBT}."
    else:
        level = NOTE
        bounds = [math.expm1(bound) for bound in (steady.change, steady.low, steady.high)]
        what = "No drift detected at the control point"
        if not steady.low <= 0 <= steady.high:
            what = "The control point shows no drift beyond the scatter of single runs"
        text = f"{what}: {label} changed by {percent(*bounds)} {span}."
    if len(line.hosts) > 1:
        text += f" It ran on {len(line.hosts)} sets of hosts; this includes their differences."
    more = {} if sudden is None else {"jump": math.expm1(sudden.change)}
    return [_finding(results, level, text, _numbers(steady) | more)]


def _of_repeats(results: ExperimentResults, main: Measure, line: Timeline) -> list[Finding]:
    """Drift of all runs of an experiment, each against the others of its point."""
    points: dict[Key, list[int]] = {}
    for place, row in enumerate(line.rows):
        points.setdefault(results.key(row, results.axes), []).append(place)
    groups = [places for places in points.values() if len(places) >= LEAST_REPEATS]
    kept = [(place, group) for group, places in enumerate(groups) for place in places]
    if len(kept) < len(groups) + 1 + LEAST_MORE:
        return []
    logs = line.logs
    drift = trend(
        [line.times[place] for place, _ in kept],
        [logs[place] for place, _ in kept],
        [group for _, group in kept],
    )
    if drift is None or not drift.clear:
        return []
    text = (
        f"Runs drift: relative to the mean of its point, {_label(main)} of a run "
        f"{_changed(drift, main)} over {duration(drift.span_s)} ({counted(drift.runs, 'run')} "
        f"at {counted(len(groups), 'point')}). With interleaved repeats this widens all "
        "intervals; if points ran one after the other, it looks like a difference between them."
    )
    return [_finding(results, WARNING, text, _numbers(drift))]


def _numbers(drift: Trend) -> dict[str, float]:
    """What a sentence rests on; changes as shares."""
    shares = {name: math.expm1(getattr(drift, name)) for name in ("change", "low", "high")}
    return {**shares, "scatter": drift.scatter, "span_s": drift.span_s, "runs": drift.runs}


def _label(main: Measure) -> str:
    return f"{main.label[:1].lower()}{main.label[1:]} ({PHASES[main.steady_phase]})"


def _changed(drift: Trend, main: Measure) -> str:
    """``fell by 12 [8, 16] % (worse)``."""
    low, high = sorted(abs(math.expm1(bound)) for bound in (drift.low, drift.high))
    share = percent(abs(math.expm1(drift.change)), low, high)
    return f"{'rose' if drift.change > 0 else 'fell'} by {share} {_judged(drift.change, main)}"


def _size(change: float, main: Measure, *words: str) -> str:
    """``12 % lower (worse)``."""
    word = words[0] if change > 0 else words[1]
    return f"{percent(abs(math.expm1(change)))} {word} {_judged(change, main)}"


def _judged(change: float, main: Measure) -> str:
    return "(better)" if (change > 0) == main.higher else "(worse)"


def _finding(
    results: ExperimentResults, level: str, text: str, numbers: dict[str, float]
) -> Finding:
    evidence = {"experiment": results.name, "table": "runs", "key": {}, "numbers": numbers}
    return Finding(results.name, RULE, level, text, evidence)
