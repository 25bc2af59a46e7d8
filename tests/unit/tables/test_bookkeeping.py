"""Curves, phases and energy of a record, as columns of the summary."""

from typing import Any

import numpy as np
import pytest

from scalesweep.core.errors import UserError
from scalesweep.tables.bookkeeping import curves_of


def record(**changes: Any) -> dict[str, Any]:
    return {"point": {"ranks": 2}, "source": "measured", **changes}


def epochs_of(samples: dict[str, Any], **changes: Any) -> Any:
    return curves_of(record(**changes), samples)[0]["_epochs"]


def test_epochs_are_means_over_the_ranks() -> None:
    loss = np.array([[1.0, 3.0], [0.5, 0.25]])
    ends = np.array([[10.0, 10.0], [20.0, 20.0]])
    epochs = epochs_of({"loss": loss, "epoch_ends": ends, "unknown": loss})
    assert epochs == {"loss": [2.0, 0.375], "epoch_ends": [10.0, 20.0]}
    # Of imported runs alone a column may stand for all ranks.
    assert epochs_of({"mae": loss[:, :1]}, source="imported") == {"mae": [1.0, 0.5]}


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ({"loss": np.ones(3)}, r"loss is float64 of shape \(3,\), not \[epoch, rank\]"),
        ({"loss": np.ones((0, 2))}, "not .epoch, rank."),
        ({"loss": np.ones((2, 1))}, "loss holds 1 ranks, the point has 2"),
        ({"loss": np.array([["a", "b"]])}, "not .epoch, rank."),
        ({"loss": np.ones((3, 2)), "mae": np.ones((2, 2))}, "loss 3, mae 2"),
    ],
)
def test_damaged_curves_are_refused(samples: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        epochs_of(samples)


def test_phases_and_energy_of_a_record() -> None:
    told = record(phases={"import": 1.5, "training": None}, energy={"joules": None, "phases": {}})
    found, _ = curves_of(told, {})
    assert found["_phases"] == {"import": 1.5}
    assert found["_energy"] is None
