"""Findings on reading: what of the rate of plain reads a pipeline makes use of."""

from collections.abc import Sequence

from scalesweep.core.formatting import PHASES, percent, scaled_unit, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.readings import Reading, readings
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CONFIRMED,
    OPEN,
    SILENT,
    Finding,
    claim_of,
    evidence_of,
    marked,
)
from scalesweep.findings.differences import share_p

RULE = "reading"
# At this share of the ceiling files are what limits the rate; below the other one they are not.
NEAR, FAR = 0.8, 0.5
MOST = 4


def against_reads(study: ExperimentResults) -> list[Finding]:
    """The best share of the reading ceiling, by state of the page cache and by workload.

    Points whose samples come from a cache of the pipeline's own read no files, and are left out.
    """
    groups: dict[Key, list[Reading]] = {}
    kinds = [name for name in study.leaders if parameter_of(study.entry, name).get("workload")]
    for one in readings(study):
        if one.from_files:
            key = (*study.key(one.row, kinds), one.row["source"], one.state)
            groups.setdefault(key, []).append(one)
    chosen = list(groups.values())[:MOST]
    return [finding for those in chosen for finding in _finding(study, those)]


def _what_else(study: ExperimentResults, best: Reading) -> str:
    """What limits the rate where files do not: what the consumer waits for, if that is known."""
    measure = study.measures.get("waiting_share")
    key = (*study.key(best.row, study.axes), best.row["source"])
    rows = [row for row in study.points if (*study.key(row, study.axes), row["source"]) == key]
    waited = measure.value(rows[0], "mean", "run") if measure and rows else None
    if waited is None:
        return ": the pipeline's own work limits the rate, not the files"
    return f": files do not limit the rate; the consumer waits {percent(waited)} of the time"


def _finding(study: ExperimentResults, those: Sequence[Reading]) -> list[Finding]:
    best = max(those, key=lambda one: one.share)
    least = min(those, key=lambda one: one.share)
    factor, unit = scaled_unit("bytes/s", best.ceiling)
    low, high = (None if v is None else v * factor for v in (best.low, best.high))
    text = f"{'at best ' if len(those) > 1 else ''}samples are read at the rate of "
    text += with_interval(best.rate * factor, low, high, unit)
    text += f" ({PHASES[best.phase]}, {study.describe(best.row)}), "
    text += f"{percent(best.share, best.share_low, best.share_high)} of what plain reads reach "
    text += (
        f"from a {best.state} page cache ({with_interval(best.ceiling * factor, None, None, unit)})"
    )
    if len(those) > 1:
        text += f"; the least is {percent(least.share)}, {study.describe(least.row)}"
    level, against = CONFIRMED, None
    if best.share_low is None or best.share_high is None:
        text += "; no interval, not confirmed"
        level = OPEN
    elif best.share_low >= NEAR:
        text += ": files limit the rate, not the pipeline"
        against = NEAR
    elif best.share_high <= FAR:
        text += _what_else(study, best)
        against = FAR
    columns = ("share", "share_low", "share_high", "low", "high")
    evidence = evidence_of(study, "reading", best.row, columns)
    evidence["key"]["phase"] = best.phase
    text = marked(best.row["source"], f"{text}.")
    # Of so many the best is cited, and held against two bounds.
    repeats = best.row.get("repeats")
    p = None
    if against is not None:
        p = share_p(best.share, best.share_low, best.share_high, repeats, against) * len(those)
    what = (RULE, *study.key(best.row, study.axes), best.row["source"], best.state)
    claims = (claim_of(p, *what),)
    if against is None:  # an estimate, which claims nothing, but might have
        said = Finding(study.name, RULE, level, text, evidence)
        return [said, Finding(study.name, RULE, SILENT, "", claims=claims)]
    return [Finding(study.name, RULE, level, text, evidence, claims=claims)]
