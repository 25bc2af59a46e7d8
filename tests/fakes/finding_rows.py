"""Findings with their sentences, as a report shows them."""

from scalesweep.aspects.find import rules
from scalesweep.findings.base import SILENT, Finding


def said(findings: list[Finding]) -> list[Finding]:
    """The findings without those that are silent, with their sentences."""
    return [rules()[each.rule].say(each) for each in findings if each.state != SILENT]


def only(findings: list[Finding]) -> Finding:
    """The only finding that is said."""
    findings = said(findings)
    assert len(findings) == 1, [finding.sentence for finding in findings]
    return findings[0]
