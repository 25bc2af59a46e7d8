"""Which findings of an experiment are clear: all that it claims is judged together, in one place.

The family is every claim of an experiment that could be marked clear: each ratio, each best value,
each efficiency against 80 %, each largest loss, also those that turn out not to be clear or of
which nothing is said. Holm's procedure keeps the chance that any of the clear ones is false at
LEVEL, whatever the noise of different claims has in common. What an experiment shows on the first
screen is a part of this family.

Lists that are searched for what is odd among many (stragglers) are a family of their own: their
false discoveries are kept at LISTS. Estimates that claim no difference (a ceiling, a latency) have
an interval, and warnings have the level of their own test. tests/acceptance/test_clear.py measures
what the two come to; docs/methods/clear.md has the figures, and where 5 % is not kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scalesweep.analysis.multiple import holm_cut
from scalesweep.analysis.stats import SIGNIFICANT
from scalesweep.core.formatting import counted
from scalesweep.findings.base import CONFIRMED, OPEN, SILENT, Finding

# Of the 5 % of experiments that may have a false clear sentence.
LISTS = 0.01
LEVEL = SIGNIFICANT - LISTS
# In the evidence of a finding: what its claims were judged by.
CLAIM = "claim"


def judged(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of an experiment, as they stand among all its claims.

    Those whose claims do not stand are not confirmed; what is silent is left out.
    """
    cut, count = cut_of(findings), len(_claims(findings))
    return [_judged(finding, cut, count) for finding in findings if finding.level != SILENT]


def cut_of(findings: Sequence[Finding]) -> float:
    """Up to which p value the claims of an experiment are clear."""
    return holm_cut(list(_claims(findings).values()), LEVEL)


def _claims(findings: Sequence[Finding]) -> dict[tuple[Any, ...], float]:
    return {claim.what: claim.p for finding in findings for claim in finding.claims}


def _judged(finding: Finding, cut: float, claims: int) -> Finding:
    if not finding.claims:
        return finding
    p = max(claim.p for claim in finding.claims)
    known = finding.evidence | {CLAIM: {"p": p, "clear_to": cut, "claims": claims}}
    settled = replace(finding, evidence=known, claims=(), unless="")
    if finding.level != CONFIRMED or p <= cut:
        return settled
    said = (finding.unless or finding.text).removesuffix(".")
    among = counted(claims, "claim") if claims > 1 else "its only claim"
    text = f"{said}; not confirmed among the {among} of this experiment."
    return replace(settled, level=OPEN, text=text)


def clear_to(findings: Sequence[Finding]) -> float:
    """Up to which p value claims are clear, in an experiment with these findings."""
    for finding in findings:
        known: Mapping[str, Any] = finding.evidence.get(CLAIM) or {}
        if known:
            return float(known["clear_to"])
    return LEVEL
