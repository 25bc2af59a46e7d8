"""The limit of CPU time."""

import pytest

from scalesweep.core.cpu_limit import TookTooLongError, cpu_limit


def burn() -> None:
    while True:
        pass


class Slow:
    """Its destructor takes for ever: what is raised in there, Python drops."""

    def __del__(self) -> None:
        burn()


def test_a_body_that_takes_for_ever_is_ended() -> None:
    with pytest.raises(TookTooLongError), cpu_limit(0.01):
        burn()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_that_was_dropped_is_raised_again() -> None:
    with pytest.raises(TookTooLongError), cpu_limit(0.01):
        Slow()
        burn()


def test_a_short_body_is_left_alone() -> None:
    with cpu_limit(5.0):
        pass
