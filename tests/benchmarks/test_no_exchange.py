"""What a run without exchange does otherwise."""

import pytest

from harness import no_exchange


@pytest.mark.parametrize(
    ("profile", "together", "epochs"),
    [("cprofile", 8, [100, 2, 100]), ("noexchange", 1, [4, 2, 100])],
)
def test_a_rank_alone_has_a_rate_of_its_own_and_trains_to_no_target(
    monkeypatch, profile, together, epochs
):
    monkeypatch.setenv("SCALESWEEP_PROFILE", profile)
    assert no_exchange.left_out() == (profile == "noexchange")
    assert no_exchange.together(8) == together
    planned = [(100, 0.9), (2, 0.9), (100, None)]
    assert [no_exchange.epochs(*each) for each in planned] == epochs
