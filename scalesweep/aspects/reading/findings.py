"""Findings on reading: what of the rate of plain reads a pipeline makes use of."""

from collections.abc import Sequence

from scalesweep.aspects.reading.demand_findings import RULE_OF_DEMAND
from scalesweep.aspects.reading.table import Reading, readings
from scalesweep.core.formatting import PHASES, counted, percent, scaled_unit, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    marked,
)
from scalesweep.findings.differences import share_p

RULE = "reading"
# At this share of the ceiling files are what limits the rate; below the other one they are not.
NEAR, FAR = 0.8, 0.5
MOST = 4


def against_reads(results: ExperimentResults) -> list[Finding]:
    """The best share of the reading ceiling, by state of the page cache and by workload.

    Points whose samples come from a cache of the pipeline's own read no files, and are left out.
    """
    groups: dict[Key, list[Reading]] = {}
    kinds = [name for name in results.leaders if parameter_of(results.entry, name).get("workload")]
    for row in readings(results):
        if row.from_files:
            key = (*results.key(row.point, kinds), row.source, row.state)
            groups.setdefault(key, []).append(row)
    every = list(groups.values())
    findings = [finding for rows in every[:MOST] for finding in _finding(results, rows)]
    if left := every[MOST:]:
        text = f"{counted(len(left), 'more combination')} of workload and page cache: only in the "
        text += f"table {Reading.TABLE}; the sentences above are on the first {MOST}."
        evidence = declared_evidence(results, left[0][0], ("share",))
        findings.append(Finding(results.name, RULE, NOTE, text, evidence))
    return findings


def _what_else(results: ExperimentResults, best: Reading) -> str:
    """What limits the rate where files do not: what the consumer waits for, if that is known."""
    measure = results.measures.get("waiting_share")
    key = _point_key(results, best)
    rows = [
        row for row in results.points if (*results.key(row, results.axes), row["source"]) == key
    ]
    waited = measure.value(rows[0], "mean", "run") if measure and rows else None
    if waited is None:
        return ": the pipeline's own work limits the rate, not the files"
    return f": files do not limit the rate; the consumer waits {percent(waited)} of the time"


def _point_key(results: ExperimentResults, row: Reading) -> Key:
    return (*results.key(row.point, results.axes), row.source)


def _finding(results: ExperimentResults, rows: Sequence[Reading]) -> list[Finding]:
    """The share of the ceiling that the best of some points reaches, as one sentence with its
    claim; rates are bytes/s. Clear where the interval of the share lies wholly beyond a bound."""
    best = max(rows, key=lambda row: row.share.value)
    least = min(rows, key=lambda row: row.share.value)
    rate, share = best.rate, best.share
    factor, unit = scaled_unit("bytes/s", best.ceiling)
    low, high = (None if v is None else v * factor for v in (rate.low, rate.high))
    text = f"{'at best ' if len(rows) > 1 else ''}samples are read at the rate of "
    text += with_interval(rate.value * factor, low, high, unit)
    text += f" ({PHASES[best.phase]}, {results.describe(best.row)}), "
    text += f"{percent(share.value, share.low, share.high)} of what plain reads reach "
    text += (
        f"from a {best.state} page cache ({with_interval(best.ceiling * factor, None, None, unit)})"
    )
    if len(rows) > 1:
        text += f"; the least is {percent(least.share.value)}, {results.describe(least.row)}"
    level, against = CONFIRMED, None
    if share.low is None or share.high is None:
        text += "; no interval, not confirmed"
        level = OPEN
    elif share.low >= NEAR:
        text += ": files limit the rate, not the pipeline"
        against = NEAR
    elif share.high <= FAR:
        text += _what_else(results, best)
        against = FAR
    columns = ("share", "share_low", "share_high", "low", "high")
    evidence = declared_evidence(results, best, columns)
    evidence["key"]["phase"] = best.phase
    text = marked(best.source, f"{text}.")
    # Of so many the best is cited, and held against two bounds.
    p = None
    if against is not None:
        p = share_p(share.value, share.low, share.high, best.repeats, against) * len(rows)
    claims = (claim_of(p, RULE, *_point_key(results, best), best.state),)
    if against is None:  # an estimate, which claims nothing, but might have
        said = Finding(results.name, RULE, level, text, evidence)
        return [said, Finding(results.name, RULE, SILENT, "", claims=claims)]
    return [Finding(results.name, RULE, level, text, evidence, claims=claims)]


RULES = (Rule(against_reads, figures={RULE: ("reading",)}), RULE_OF_DEMAND)
