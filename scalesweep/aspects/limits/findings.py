"""What the report says of the resource that allows least, as a note: it claims nothing."""

from collections.abc import Sequence

from scalesweep.aspects.limits.table import LimitRow, in_words
from scalesweep.core.formatting import counted, listed, percent, with_interval
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence, marked
from scalesweep.table.declared import Estimate

RULE = "limits"
MOST = 4
_COLUMNS = ("allowed", "allowed_low", "allowed_high", "measured", "share", "per_sample", "ceiling")


def binding_resource(results: ExperimentResults) -> list[Finding]:
    """Of the fastest points the resource that allows least, and what measured rates contradict."""
    points: dict[Key, list[LimitRow]] = {}
    for row in results.of(LimitRow):
        points.setdefault((*results.key(row.point, results.axes), row.source), []).append(row)
    fastest = sorted(points.values(), key=lambda rows: -rows[0].measured.value)
    # A contradiction is never left out for being slow.
    fastest.sort(key=lambda rows: not any(row.above for row in rows))
    return [_finding(results, rows) for rows in fastest[:MOST]]


def _finding(results: ExperimentResults, rows: Sequence[LimitRow]) -> Finding:
    """A point's least allowed rate beside the measured one, and what is not known."""
    least = next(row for row in rows if row.binding)
    assert least.allowed and least.share and least.ceiling and least.per_sample
    known = [row for row in rows if row.allowed]
    where = f"at {results.describe(least.row)}, " if results.axes else ""
    text = (
        f"{where}of {counted(len(known), 'resource')} that {'is' if len(known) == 1 else 'are'} "
        f"measured {least.resource} allows least: {_rate(least.allowed)} "
        f"({in_words(least.ceiling, least.ceiling_unit or '')} over "
        f"{in_words(least.per_sample, least.per_sample_unit or '')} a sample; "
        f"{least.where}); training reaches {_rate(least.measured)}, "
        f"{percent(least.share.value, least.share.low, least.share.high)} of it"
    )
    if unknown := [row.resource for row in rows if row.missing]:
        text += f"; not known: {listed(unknown)}"
    if above := [row for row in rows if row.above]:
        text += f"; the measured rate is above what {listed([row.resource for row in above])} "
        text += f"{'allows' if len(above) == 1 else 'allow'}, which is a contradiction: a ceiling "
        text += "that was measured too low or on fewer devices, a cache, or another count of "
        text += "what a sample takes"
    evidence = declared_evidence(results, least, _COLUMNS)
    evidence["key"]["resource"] = least.resource
    return Finding(results.name, RULE, NOTE, marked(least.source, f"{text}."), evidence)


def _rate(estimate: Estimate) -> str:
    return with_interval(estimate.value, estimate.low, estimate.high, "samples/s")


RULES = (Rule(binding_resource),)
