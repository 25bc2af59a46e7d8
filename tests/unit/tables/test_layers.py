"""Times of layers as a record has them: medians and means, and what contradicts itself."""

from typing import Any

import numpy as np
import pytest

from scalesweep.core.errors import UserError
from scalesweep.tables.layers import layers_of


def record(**layers: Any) -> dict[str, Any]:
    noted = {
        "name": ["a", "b"], "kind": ["dense", "add"], "count": [1, 2], "flop_forward": [1.0, 2.0],
        "flop_backward": [1.0, 0.0], "bytes_forward": [4.0, 4.0], "bytes_backward": [4.0, 0.0],
    }  # fmt: skip
    return {"point": {"ranks": 2}, "notes": {"layers": noted | layers}}


def arrays(**changes: Any) -> dict[str, Any]:
    one = np.arange(1.0, 13).reshape(3, 2, 2)
    alone = np.arange(1.0, 7).reshape(3, 2)
    found = {
        "layer_forward": one, "layer_both": 2 * one, "layer_step": alone, "layer_launch": alone,
    }  # fmt: skip
    return found | changes


def test_times_are_medians_over_rounds_and_means_over_ranks() -> None:
    found = layers_of(record(), arrays())
    assert found.forward == [5.5, 7.5]  # of rounds 5, 6 and 7, 8
    assert found.both == [11, 15]
    assert (found.step, found.launch) == (3.5, 3.5)
    assert layers_of({"point": {"ranks": 2}, "notes": {}}, arrays()) is None
    assert layers_of(record(), {}) is None


@pytest.mark.parametrize(
    ("noted", "changes", "said"),
    [
        ({"count": [1]}, {}, "different lengths"),
        ({"name": []}, {}, "no or different lengths"),
        ({}, {"layer_both": np.zeros((3, 2, 2))}, "layer_both is not positive times"),
    ],
)
def test_contradictions_are_named(noted: Any, changes: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        layers_of(record(**noted), arrays(**changes))
