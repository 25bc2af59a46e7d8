"""Claims are judged together: Holm by hand."""

import pytest

from scalesweep.analysis.multiple import holm_cut
from scalesweep.findings.base import CONFIRMED, OPEN, SILENT, Claim, Finding, claim_of
from scalesweep.findings.family import LEVELS, OTHERS, clear_to, judged


def test_holm_steps_down_until_one_fails() -> None:
    # Of four at 5 %: 0.01 <= 0.05/4, 0.016 <= 0.05/3, 0.03 > 0.05/2.
    assert holm_cut([0.03, 0.01, 0.04, 0.016], 0.05) == pytest.approx(0.025)
    assert holm_cut([0.02, 0.5], 0.05) == pytest.approx(0.05)
    assert holm_cut([0.03, 0.5], 0.05) == pytest.approx(0.025)
    assert holm_cut([], 0.05) == holm_cut([0.01], 0.05) == 0.05


LEVEL = LEVELS[OTHERS]


def made(p: float, name: str, level: str = CONFIRMED, unless: str = "") -> Finding:
    return Finding("e", "ratio", level, f"{name}.", claims=(Claim((name,), p),), unless=unless)


def test_what_does_not_stand_among_all_is_not_confirmed() -> None:
    found = [made(0.001, "a"), made(0.004, "b"), made(0.008, "c", unless="C was measured")]
    a, b, c = judged([*found, made(1.0, "d", SILENT)])
    assert (a.level, b.level, c.level) == (CONFIRMED, OPEN, OPEN)
    assert (b.text, c.text) == ("b; not confirmed.", "C was measured; not confirmed.")
    assert a.evidence["claim"] == {"p": 0.001, "clear_to": pytest.approx(LEVEL / 3), "claims": 4}
    assert clear_to([a, b], "ratio") == pytest.approx(LEVEL / 3)
    # The same without the others: what is silent counts, too.
    assert [one.level for one in judged(found[1:2])] == [CONFIRMED]


def test_sentences_on_one_test_share_its_claim() -> None:
    same = [made(0.008, "a"), made(0.008, "a")]
    assert [one.level for one in judged(same)] == [CONFIRMED, CONFIRMED]
    assert claim_of(float("nan"), "a").p == claim_of(None, "a").p == 1


def test_a_verdict_is_not_paid_for_by_other_claims() -> None:
    verdict = Finding("e", "verdict", CONFIRMED, "v.", claims=(Claim(("v",), 0.019),))
    found = judged([verdict, *(made(0.5, str(name)) for name in range(20))])
    assert found[0].level == CONFIRMED
