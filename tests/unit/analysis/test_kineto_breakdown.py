"""The breakdown of a step from imported traces."""

from dataclasses import asdict

import pytest

from scalesweep.analysis.profile_account import trace_breakdown
from scalesweep.analysis.step_account import TRACE, StepAccount


def metrics(**values: float) -> dict[str, dict[str, float]]:
    known = {"runtime": 1.0, "computation": 0.6, "exposed_communication": 0.2, "steps": 10.0}
    return {name: {"value": value} for name, value in {**known, **values}.items()}


def test_terms_of_a_step_add_up() -> None:
    """Ranks compute 50 and 70 ms: those of 50 wait 20 of their 30 ms of exchange."""
    account = trace_breakdown(metrics(load_balance=60 / 70), 2)
    assert account is not None and account.form == TRACE
    assert (account.elapsed, account.terms["compute"]) == pytest.approx((0.1, 0.06))
    assert account.terms["persistent"] == pytest.approx(0.01)
    assert account.terms["communication"] == pytest.approx(0.01)
    assert account.term("unattributed") == pytest.approx(0.02)  # copies and idle: no communication
    assert StepAccount(**asdict(account)) == account


def test_an_imbalance_that_no_rank_waits_for_is_none() -> None:
    account = trace_breakdown(metrics(load_balance=0.5, exposed_communication=0.05), 2)
    assert account is not None and account.terms["persistent"] == pytest.approx(0.005)
    assert account.terms["communication"] == pytest.approx(0.0)


def test_without_all_ranks_no_imbalance_is_known() -> None:
    account = trace_breakdown(metrics(), 8)
    assert account is not None
    assert (account.terms["persistent"], account.terms["communication"]) == pytest.approx(
        (0.0, 0.02)
    )


@pytest.mark.parametrize("name", ["runtime", "computation", "exposed_communication", "steps"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_what_cannot_be_has_none(name: str, value: float) -> None:
    account = trace_breakdown(metrics(**{name: value}), 2)
    assert account is None or (name == "exposed_communication" and value == 0)
    left = {other: each for other, each in metrics().items() if other != name}
    assert trace_breakdown(left, 2) is None
