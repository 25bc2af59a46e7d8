"""Findings on canaries: whether machines differed or changed between runs that are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.canary import LEAST_RUNS, between, during
from scalesweep.aspects.machine_check.table import COLUMNS, Look
from scalesweep.core.joined_experiments import BENCHMARK
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import ATTENTION, NOTE, Finding, Number, Rule, number_of
from scalesweep.tables.bookkeeping import CANARY_WORDS, WHEN

RULE = "canary"


def canary(results: ExperimentResults) -> list[Finding]:
    """Warnings where the machine differed between points or changed during runs; else a note.

    Nothing where runs have no canary. Only runs of one benchmark are compared with each other:
    others may have another Python, whose products are others.
    """
    looks = [look for look in results.of(Look) if look.source == "measured"]
    runs = {look.run_id for look in looks}
    findings = []
    for kind, words in CANARY_WORDS.items():
        rates = pd.DataFrame(
            [(look.run_id, look.look, look.cells[COLUMNS[kind]]) for look in looks],
            columns=["run", "look", "rate"],
        ).pivot(index="run", columns="look", values="rate")
        points = {look.run_id: look.point for look in looks}
        findings += _between(results, rates.mean(axis=1).dropna(), points, words)
        if {*WHEN} <= {*rates.columns}:
            both = rates.dropna()
            before, after = (both[when].tolist() for when in WHEN)
            findings += _during(results, before, after, words)
    if findings or not runs:
        return findings
    few = len(runs) < LEAST_RUNS
    words = "too few to compare" if few else "no difference and no change is clear"
    return [_finding(results, NOTE, words, number_of("runs", len(runs), "1"))]


def _between(
    results: ExperimentResults,
    rates: pd.Series,
    points: Mapping[str, Mapping[str, Any]],
    words: str,
) -> list[Finding]:
    """A warning if the machine was clearly faster at one point of a benchmark than at another."""
    benchmarks: dict[Any, dict[Key, list[str]]] = {}
    for run in rates.index:
        key = results.key(points[run], results.axes)
        benchmarks.setdefault(points[run].get(BENCHMARK), {}).setdefault(key, []).append(run)
    findings = []
    for of_point in benchmarks.values():
        if spread := between([rates[runs].tolist() for runs in of_point.values()]):
            slow, fast = (points[[*of_point.values()][place][0]] for place in spread[:2])
            what = (
                f"{words} are faster at {results.describe(fast)} than at {results.describe(slow)}"
            )
            change = number_of("change", spread[2], "1")
            findings.append(_finding(results, ATTENTION, what, change, _BETWEEN))
    return findings


def _during(
    results: ExperimentResults, before: Sequence[float], after: Sequence[float], words: str
) -> list[Finding]:
    """A warning if the machine was clearly slower or faster after the runs than before."""
    change = during(before, after)
    if change is None or not change.clear:
        return []
    low, high = sorted((abs(change.low), abs(change.high)))
    number = number_of("change", abs(change.change), "1", low, high)
    way = "slower" if change.change < 0 else "faster"
    return [_finding(results, ATTENTION, f"{words} are {way} after runs", number, _DURING)]


def _finding(
    results: ExperimentResults, state: str, subject: str, number: Number, how: str = ""
) -> Finding:
    evidence = {"experiment": results.name, "table": Look.TABLE, "key": {}}
    return Finding(
        results.name, RULE, state, subject=subject, numbers=(number,), evidence=evidence, next=how
    )


_BETWEEN = "run the points on the same nodes, in blocks"
_DURING = "look for heat or other work on the nodes"
RULES = (
    Rule(
        RULE, canary,
        says={ATTENTION: "The machine differed: {subject}: {change:%}.",
              NOTE: "Machine checks of {runs} runs: {subject}."},
    ),
)  # fmt: skip
