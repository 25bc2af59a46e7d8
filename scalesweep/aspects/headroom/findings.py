"""Of each point the resource that binds, and what was not probed."""

from collections.abc import Sequence

from scalesweep.aspects.headroom.table import Headroom
from scalesweep.core.formatting import PHASES, listed
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.tables.file_rates import TRAINING

RULE, INPUT = "headroom", "input bound"
MOST = 4
NEAR = 0.5  # a share from which on a resource is said to bind


def points_of(results: ExperimentResults) -> list[list[Headroom]]:
    """The rows of each point, source and phase, the largest share first."""
    groups: dict[Key, list[Headroom]] = {}
    for row in results.of(Headroom):
        key = (*results.key(row.point, results.axes), row.source, row.phase)
        groups.setdefault(key, []).append(row)
    known = [rows for rows in groups.values() if any(row.binding for row in rows)]
    return sorted(known, key=lambda rows: -binding(rows)[1])


def binding(rows: Sequence[Headroom]) -> tuple[Headroom, float]:
    """The row of the resource that binds, and its share."""
    row = next(row for row in rows if row.binding)
    return row, row.share.value if row.share else 0.0


def binding_resource(results: ExperimentResults) -> list[Finding]:
    """Of the points with the largest shares what binds: a note, for attention if above 1."""
    return [_finding(results, rows) for rows in points_of(results)[:MOST]]


def _finding(results: ExperimentResults, rows: Sequence[Headroom]) -> Finding:
    row, _ = binding(rows)
    assert row.share and row.ceiling
    share = row.share
    above = share.value > 1 if share.low is None else share.low > 1
    at = f"at {results.describe(row.row)}" if results.axes else "here"
    unknown = list(dict.fromkeys(each.resource for each in rows if each.missing))
    evidence = declared_evidence(results, row)
    evidence["key"] |= {"resource": row.resource, "phase": row.phase, "where": row.where}
    return Finding(
        results.name,
        INPUT if row.resource == TRAINING else RULE,
        ATTENTION if above else NOTE,
        subject=row.resource.capitalize(),
        words={
            "at": at + (f", {PHASES[row.phase]}" if row.phase != "run" else ""),
            "where": row.where or "",
            "binds": "binds" if share.value >= NEAR else "does not bind",
            "unknown": f"; not probed: {listed(unknown)}" if unknown else "",
        },
        numbers=(
            estimate_of("share", share, "1"),
            number_of("ceiling", row.ceiling, row.unit or ""),
        ),
        evidence=evidence,
    )


RULES = (
    Rule(
        RULE, binding_resource,
        says={
            NOTE: "{subject} {binds} {at}: {share:%} of {ceiling} ({where}){unknown}.",
            ATTENTION: "{subject} {at}: {share:%} of a ceiling measured too low ({where}).",
        },
        next={ATTENTION: "measure the ceiling on as many devices, with a cold cache"},
    ),
    Rule(
        INPUT, None,
        says={
            NOTE: "Reading {at}: training ({where}) would take {share:%} of what is read.",
            ATTENTION: "Input-bound {at}: training ({where}) would take {share:%} of what is read.",
        },
        next={ATTENTION: "read with more ranks or cores for each, or from faster files"},
    ),
)  # fmt: skip
