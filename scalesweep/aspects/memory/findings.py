"""Findings on memory: how near the model comes, and what ran out of it.

Notes: they estimate and claim nothing.
"""

from collections.abc import Sequence

from scalesweep.aspects.memory.table import (
    OUT_OF_MEMORY,
    RAN,
    RIGHT,
    WRONG,
    MemoryFitRow,
    MemoryRow,
)
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, number_of

RULE, OUT = "memory", "out of memory"
LEAST = 3  # points with a measured peak


def memory_notes(results: ExperimentResults) -> list[Finding]:
    """How near predicted peaks come, and what the model says of points that failed."""
    rows, fits = results.of(MemoryRow), results.of(MemoryFitRow)
    if not rows or not fits:
        return []
    findings, fit = [], fits[0]
    measured = [row for row in rows if row.ratio is not None]
    if len(measured) >= LEAST:
        key = {"source": measured[0].source}
        evidence = {"experiment": results.name, "table": MemoryFitRow.TABLE, "key": key}
        counts = {"peaks": len(measured), "right": fit.right, "judged": fit.right + fit.wrong}
        shares = {"error": fit.error, "within": fit.within}
        numbers = tuple(number_of(name, n, "1") for name, n in (counts | shares).items())
        findings.append(Finding(results.name, RULE, NOTE, evidence=evidence, numbers=numbers))
    out = [row for row in rows if row.outcome == OUT_OF_MEMORY]
    if out:
        points = len(out) + sum(row.outcome == RAN for row in rows)
        called = [sum(row.called == word for row in out) for word in (RIGHT, WRONG)]
        findings.append(_failed(results, OUT, out, (points, *called)))
    return findings


def _failed(
    results: ExperimentResults, rule: str, rows: Sequence[MemoryRow], counts: Sequence[int]
) -> Finding:
    """A note on points that failed, with the row of the one that needs the most."""
    worst = max(rows, key=lambda row: row.needed)
    names = ("failed", "points", "large", "fitting")
    numbers = zip(names, (len(rows), *counts), strict=True)
    return Finding(
        results.name, rule, NOTE, evidence=declared_evidence(results, worst),
        numbers=tuple(number_of(name, count, "1") for name, count in numbers),
    )  # fmt: skip


RULES = (
    Rule(
        RULE, memory_notes,
        says={NOTE: "Of {peaks} memory peaks, each predicted without itself, the median is off by "
              "{error:%}; {right} of {judged} verdicts are right."},
    ),
    Rule(
        OUT, None,
        says={NOTE: "{failed} of {points} points ran out of memory; the memory model calls {large} "
              "of them too large and {fitting} fitting."},
    ),
)  # fmt: skip
