"""Findings on canaries: whether machines differed or changed between runs that are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.analysis.canary import LEAST_RUNS, between, during
from scalesweep.aspects.machine_check.table import COLUMNS, Look
from scalesweep.core.formatting import counted, percent
from scalesweep.core.joined_experiments import BENCHMARK
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import NOTE, WARNING, Finding, Rule
from scalesweep.tables.canary_rates import WHEN, WORDS

RULE = "canary"


def canary(results: ExperimentResults) -> list[Finding]:
    """Warnings where the machine differed between points or changed during runs; else a note.

    Nothing where runs have no canary.
    """
    runs: dict[str, dict[str, Look]] = {}
    for look in results.of(Look):
        if look.source == "measured":
            runs.setdefault(look.run_id, {})[look.look] = look
    if not runs:
        return []
    findings = []
    for kind, words in WORDS.items():
        for group in _comparable(results, list(runs.values())):
            findings += _between(results, group, COLUMNS[kind], words)
        findings += _during(results, list(runs.values()), COLUMNS[kind], words)
    if findings:
        return findings
    if len(runs) < LEAST_RUNS:
        text = f"Too few runs to compare their machines: {counted(len(runs), 'run')} with a canary."
    else:
        text = (
            f"No difference between machines, and no change during runs, is clear in the canaries "
            f"of {counted(len(runs), 'run')}."
        )
    return [_finding(results, NOTE, text, {"runs": len(runs)})]


def _comparable(
    results: ExperimentResults, runs: Sequence[dict[str, Look]]
) -> list[list[dict[str, Look]]]:
    """The runs whose rates differ only if the machine does, group by group: those of one benchmark,
    as others may have another Python, whose products are others."""
    names = [name for name in (BENCHMARK,) if name in results.axes]
    groups: dict[Key, list[dict[str, Look]]] = {}
    for looks in runs:
        groups.setdefault(results.key(next(iter(looks.values())).point, names), []).append(looks)
    return list(groups.values())


def _between(
    results: ExperimentResults, runs: Sequence[dict[str, Look]], column: str, words: str
) -> list[Finding]:
    """A warning if the machine was clearly faster at one point than at another."""
    groups: dict[Key, list[float]] = {}
    points: dict[Key, Mapping[str, Any]] = {}
    for looks in runs:
        rates = [rate for look in looks.values() if (rate := look.cells[column]) is not None]
        if rates:
            point = next(iter(looks.values())).point
            key = results.key(point, results.axes)
            groups.setdefault(key, []).append(sum(rates) / len(rates))
            points[key] = point
    spread = between(list(groups.values()))
    if spread is None:
        return []
    slow, fast = (list(points.values())[place] for place in (spread.slowest, spread.fastest))
    text = (
        f"Machines differed between points: before and after the runs at {results.describe(fast)} "
        f"{words} were {percent(spread.more)} faster than at {results.describe(slow)}. Part of "
        "what differs between these points may be the machine's."
    )
    return [_finding(results, WARNING, text, {"more": spread.more, "chance": spread.chance})]


def _during(
    results: ExperimentResults, runs: Sequence[dict[str, Look]], column: str, words: str
) -> list[Finding]:
    """A warning if the machine was clearly slower or faster after the runs than before."""
    pairs = [
        [looks[when].cells[column] for when in WHEN] for looks in runs if looks.keys() >= {*WHEN}
    ]
    pairs = [pair for pair in pairs if None not in pair]
    change = during([before for before, _ in pairs], [after for _, after in pairs])
    if change is None:
        return []
    low, high = sorted((abs(change.low), abs(change.high)))
    way = "slower" if change.change < 0 else "faster"
    text = (
        f"Machines changed during runs: after them {words} were "
        f"{percent(abs(change.change), low, high)} {way} than before "
        f"({counted(len(pairs), 'run')}). Heat or other work on the nodes does that."
    )
    numbers = {"change": change.change, "low": change.low, "high": change.high}
    return [_finding(results, WARNING, text, numbers)]


def _finding(
    results: ExperimentResults, level: str, text: str, numbers: dict[str, float]
) -> Finding:
    evidence = {"experiment": results.name, "table": Look.TABLE, "key": {}, "numbers": numbers}
    return Finding(results.name, RULE, level, text, evidence)


RULES = (Rule(canary),)
