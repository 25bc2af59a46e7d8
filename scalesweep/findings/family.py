"""Which findings of an experiment are clear: all that it claims is judged together, in one place.

Of the 5 % of experiments that may have a false clear sentence 2 % are for verdicts (efficiencies
against the target), 2 % for the step (terms that take longer than at the reference), and 1 % for
all other claims: so that a verdict is not paid for by what else is compared. Within each part
(``Rule.part``) Holm's procedure keeps that share, whatever the noise of different claims has in
common; claims of which nothing is said count too.

Estimates that claim no difference (a ceiling, a latency) have an interval, and what needs attention
has the level of its own test. tests/acceptance/test_clear.py measures what it comes to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scalesweep.analysis.multiple import LEVELS, holm_cut
from scalesweep.core.formatting import counted
from scalesweep.findings.base import CLEAR, OPEN, SILENT, Finding


def judged(findings: Sequence[Finding], part_of: Mapping[str, str]) -> list[Finding]:
    """The findings of an experiment, as they stand among all claims of their part; ``part_of`` has
    the part of each rule. What is silent is left out.
    """
    claims: dict[str, dict[tuple[Any, ...], float]] = {part: {} for part in LEVELS}
    for finding in findings:
        claims[part_of[finding.rule]].update({claim.what: claim.p for claim in finding.claims})
    cuts = {part: holm_cut(list(of.values()), LEVELS[part]) for part, of in claims.items()}
    return [
        _judged(finding, cuts[part_of[finding.rule]], len(claims[part_of[finding.rule]]))
        for finding in findings
        if finding.state != SILENT
    ]


def _judged(finding: Finding, cut: float, among: int) -> Finding:
    if not finding.claims:
        return finding
    p = max(claim.p for claim in finding.claims)
    settled = replace(finding, p=p, claims=())
    if finding.state != CLEAR or p <= cut:
        return settled
    why = finding.reason or f"not clear, {counted(among, 'claim')} taken together"
    return replace(settled, state=OPEN, reason=why)
