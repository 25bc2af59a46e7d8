"""Which findings of an experiment are clear: all that it claims is judged together, in one place.

Of the 5 % of experiments that may have a false clear sentence 2 % are for verdicts (efficiencies
against the target), 2 % for the step (terms that take longer than at the reference), and 1 % for
all other claims: so that a verdict is not paid for by what else is compared. Within each part
Holm's procedure keeps that share, whatever the noise of different claims has in common; claims of
which nothing is said count too. What an experiment shows on the first screen is a part of this.

Estimates that claim no difference (a ceiling, a latency) have an interval, and warnings have the
level of their own test. tests/acceptance/test_clear.py measures what it comes to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scalesweep.analysis.multiple import holm_cut
from scalesweep.findings.base import CONFIRMED, OPEN, SILENT, Finding

VERDICTS, STEP, OTHERS = "verdicts", "step", "others"
LEVELS: Mapping[str, float] = {VERDICTS: 0.02, STEP: 0.02, OTHERS: 0.01}
# The part of each rule; of any other rule OTHERS.
_PARTS: Mapping[str, str] = {
    "verdict": VERDICTS, "efficiency": VERDICTS,
    "largest loss": STEP, "first epoch": STEP, "causes": STEP,
}  # fmt: skip
# Lists that are searched for what is odd among many (stragglers, drift) keep this by themselves.
LISTS = LEVELS[OTHERS]
# In the evidence of a finding: what its claims were judged by.
CLAIM = "claim"


def level_of(rule: str) -> float:
    """In which share of experiments any claim of the part of a rule may be falsely clear."""
    return LEVELS[_part(rule)]


def judged(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of an experiment, as they stand among all claims of their part.

    Those whose claims do not stand are not confirmed; what is silent is left out.
    """
    parts: dict[str, dict[tuple[Any, ...], float]] = {}
    for finding in findings:
        of_part = parts.setdefault(_part(finding.rule), {})
        of_part.update({claim.what: claim.p for claim in finding.claims})
    return [
        _judged(finding, parts[_part(finding.rule)])
        for finding in findings
        if finding.level != SILENT
    ]


def cut_of(findings: Sequence[Finding], rule: str) -> float:
    """Up to which p value the claims of the part of a rule are clear."""
    claims = {
        claim.what: claim.p
        for finding in findings if _part(finding.rule) == _part(rule)
        for claim in finding.claims
    }  # fmt: skip
    return holm_cut(list(claims.values()), level_of(rule))


def _part(rule: str) -> str:
    return _PARTS.get(rule, OTHERS)


def _judged(finding: Finding, claims: Mapping[tuple[Any, ...], float]) -> Finding:
    if not finding.claims:
        return finding
    cut = holm_cut(list(claims.values()), level_of(finding.rule))
    p = max(claim.p for claim in finding.claims)
    known = finding.evidence | {CLAIM: {"p": p, "clear_to": cut, "claims": len(claims)}}
    settled = replace(finding, evidence=known, claims=(), unless="")
    if finding.level != CONFIRMED or p <= cut:
        return settled
    said = (finding.unless or finding.text).removesuffix(".")
    return replace(settled, level=OPEN, text=f"{said}; not confirmed.")


def clear_to(findings: Sequence[Finding], rule: str) -> float:
    """Up to which p value claims of the part of a rule are clear, in an experiment with these
    findings."""
    for finding in findings:
        known: Mapping[str, Any] = finding.evidence.get(CLAIM) or {}
        if known and _part(finding.rule) == _part(rule):
            return float(known["clear_to"])
    return level_of(rule)
