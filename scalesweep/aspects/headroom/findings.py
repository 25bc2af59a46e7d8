"""Of each point the resource that binds, and what was not probed."""

from collections.abc import Sequence

from scalesweep.aspects.headroom.table import Headroom
from scalesweep.core.formatting import PHASES, listed, number, percent, scaled_unit
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    ATTENTION,
    NOTE,
    Finding,
    Rule,
    declared_evidence,
    marked,
)
from scalesweep.tables.file_rates import TRAINING

RULE = "headroom"
MOST = 4
_COLUMNS = ("share", "share_low", "share_high", "rate", "ceiling")


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
    reached = percent(share.value, share.low, share.high)
    at = f"at {results.describe(row.row)}" if results.axes else "here"
    phase = f", {PHASES[row.phase]}" if row.phase != "run" else ""
    factor, unit = scaled_unit(row.unit or "", row.ceiling)
    ceiling = f"{number(factor * row.ceiling)} {unit}"
    unknown = list(dict.fromkeys(each.resource for each in rows if each.missing))
    above = share.value > 1 if share.low is None else share.low > 1
    if row.resource == TRAINING:
        keeps = share.high is not None and share.high < 1
        bound = "reading keeps up" if keeps else "whether reading keeps up is not clear"
        bound = "input-bound" if above else bound
        text = f"{bound} {at}{phase}: training ({row.where}) takes {reached} of what is read"
    elif above:
        text = f"{row.resource} {at}{phase}: {reached} of a ceiling measured too low ({row.where})"
    else:
        text = f"{row.resource} binds {at}{phase}: {reached} of {ceiling} ({row.where})"
    text += f"; not probed: {listed(unknown)}" if unknown else ""
    evidence = declared_evidence(results, row, _COLUMNS)
    evidence["key"] |= {"resource": row.resource, "phase": row.phase, "where": row.where}
    level = ATTENTION if above else NOTE
    return Finding(results.name, RULE, level, marked(row.source, f"{text}."), evidence)


RULES = (Rule(RULE, binding_resource, figures=("headroom",)),)
