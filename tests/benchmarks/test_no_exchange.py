"""What a run without exchange does otherwise."""

import pytest

from harness import no_exchange


@pytest.fixture
def alone(monkeypatch):
    monkeypatch.setenv("SCALESWEEP_PROFILE", "noexchange")


def test_as_always(monkeypatch):
    for kind in (None, "cprofile"):
        monkeypatch.setenv("SCALESWEEP_PROFILE", kind) if kind else None
        assert not no_exchange.left_out()
        assert no_exchange.together(8) == 8
        assert no_exchange.epochs(100, 0.9) == no_exchange.epochs(100, None) == 100


@pytest.mark.usefixtures("alone")
def test_a_rank_alone_has_a_rate_of_its_own_and_trains_to_no_target():
    assert no_exchange.left_out()
    assert no_exchange.together(8) == 1
    assert no_exchange.epochs(100, 0.9) == 4
    assert no_exchange.epochs(2, 0.9) == 2
    assert no_exchange.epochs(100, None) == 100
