"""Claims are judged together, part by part: Holm by hand."""

import pytest

from scalesweep.analysis.multiple import OTHERS, VERDICTS, holm_cut
from scalesweep.findings.base import CLEAR, OPEN, SILENT, Claim, Finding, claim_of
from scalesweep.findings.family import judged

PARTS = {"ratio": OTHERS, "verdict": VERDICTS}


def test_holm_steps_down_until_one_fails() -> None:
    # Of four at 5 %: 0.01 <= 0.05/4, 0.016 <= 0.05/3, 0.03 > 0.05/2.
    assert holm_cut([0.03, 0.01, 0.04, 0.016], 0.05) == pytest.approx(0.025)
    assert holm_cut([0.02, 0.5], 0.05) == pytest.approx(0.05)
    assert holm_cut([0.03, 0.5], 0.05) == pytest.approx(0.025)
    assert holm_cut([], 0.05) == holm_cut([0.01], 0.05) == 0.05


def made(p: float, name: str, state: str = CLEAR, rule: str = "ratio") -> Finding:
    return Finding("e", rule, state, claims=(Claim((name,), p),))


@pytest.mark.parametrize(
    ("others", "states"),
    [
        # At 1 %: 0.001 <= 0.01/4, 0.004 > 0.01/3; what is silent counts, too.
        ([made(0.008, "c"), made(1.0, "d", SILENT)], [CLEAR, OPEN, OPEN]),
        # Sentences on one test share its claim.
        ([made(0.004, "b")], [CLEAR, CLEAR, CLEAR]),
        # A part is not paid for by another.
        ([made(0.5, str(n), rule="verdict") for n in range(20)], [CLEAR, CLEAR] + [OPEN] * 20),
    ],
)
def test_what_does_not_stand_among_all_is_open(others: list[Finding], states: list[str]) -> None:
    said = judged([made(0.001, "a"), made(0.004, "b"), *others], PARTS)
    assert [finding.state for finding in said] == states
    assert said[0].p == 0.001
    assert all(bool(finding.reason) == (finding.state == OPEN) for finding in said)


def test_what_nothing_tests_is_never_clear() -> None:
    assert claim_of(float("nan"), "a").p == claim_of(None, "a").p == 1
