"""What the tables say, as sentences, each with the numbers it rests on.

A rule says nothing rather than something its data cannot carry: "best", "falls under" and
"faster" are claimed only where a test says so, and are clear only where they stand among all claims
of the experiment (``family``); one repeat confirms nothing.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cache

from scalesweep.aspects.registry import parts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings import drift, general
from scalesweep.findings.base import CLEAR, DISAGREE, DISTURBED, OPEN, Finding, Rule
from scalesweep.findings.family import judged
from scalesweep.findings.table import runs_of
from scalesweep.findings.totals import unsure_total

# Those that lie in no folder of an aspect.
_OTHERS: Sequence[Rule] = (*drift.RULES, *general.RULES)


def find(results: ExperimentResults) -> list[Finding]:
    """All findings of one experiment, in the order of their rules."""
    every = rules()
    stated = [finding for rule in every.values() if rule.find for finding in rule.find(results)]
    stated.sort(key=lambda finding: [*every].index(finding.rule))
    findings = judged(stated, {name: rule.part for name, rule in every.items()})
    unsure = unsure_total(results, results.main.metric) if results.main else ""
    disturbed = {str(row["run_id"]) for row in general.disturbed_runs(results)}
    findings = [_flagged(results, finding, disturbed, unsure) for finding in findings]
    return [every[finding.rule].say(finding) for finding in findings]


def _flagged(
    results: ExperimentResults, finding: Finding, disturbed: Set[str], unsure: str
) -> Finding:
    """With what is to be known of its runs: their source unless measured, other load, and that
    ranks print different totals, which leaves a loss open."""
    source = (finding.evidence.get("key") or {}).get("source")
    flags = [str(source)] if source not in (None, "measured") else []
    if finding.state in (CLEAR, OPEN) and disturbed & {*runs_of(results, finding.evidence)}:
        flags.append(DISTURBED)
    if unsure and finding.state == CLEAR and finding.rule in ("largest loss", "first epoch"):
        finding = replace(finding, state=OPEN, reason=unsure, flags=(*finding.flags, DISAGREE))
    return replace(finding, flags=(*flags, *finding.flags))


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by their names, those of no aspect last."""
    return {rule.name: rule for each in (*parts("RULES"), _OTHERS) for rule in each}
