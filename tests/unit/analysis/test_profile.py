"""What a profile says: POP's factors, and parts."""

from pathlib import Path

import pytest

from scalesweep.analysis.pop import pop_factors
from scalesweep.analysis.profile import Function, Profile, parts_of


def test_factors_of_a_replay() -> None:
    # The 16 processes of numericalalgorithmsgroup/pypop's example.
    times = 2.22611973, 2.24298113, 2.33956072
    ours = pop_factors(*times, (2.31033596, 2.26304022))
    assert {name: round(share, 6) for name, share in ours.items()} == {
        "parallel_efficiency": 0.951512, "load_balance": 0.992483,
        "communication_efficiency": 0.958719, "serialisation_efficiency": 0.979529,
        "transfer_efficiency": 0.978755,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"useful time|positive"):
        pop_factors(2.0, 1.0, 3.0)


def test_parts_by_rank() -> None:
    functions = tuple(
        Function(name, rank, kind, 1, time, time)
        for name, rank, kind, time in (
            ("MPI_Wait", 0, "cpu", 1.0), ("MPI_Wait", 1, "cpu", 2.0), ("f", 1, "cpu", 3.0),
            ("cudaLaunch", 0, "api", 9.0), ("f", None, "cpu", 5.0),
        )
    )  # fmt: skip
    parts = parts_of(Profile("x", Path("x"), functions=functions))
    assert {name: list(times) for name, times in parts.items()} == {
        "mpi": [1.0, 2.0], "other": [0.0, 3.0],
    }  # fmt: skip
