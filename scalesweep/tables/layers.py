"""What a run that times the layers of a model leaves in its row of the summary: ``_layers``.

Of each layer its name, kind, how many there are, FLOP and bytes, and seconds: medians over the
rounds, means over the ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.core.errors import UserError

LAYERS = "_layers"


@dataclass(frozen=True)
class LayerTimes:
    """The layers of a model in their order; lists of one length.

    Seconds of a layer: ``forward``, and ``both`` with its backward pass. ``step`` is the whole step
    without any exchange, ``launch`` the start of one operation.
    """

    name: list[str]
    kind: list[str]
    count: list[int]
    flop_forward: list[float]
    flop_backward: list[float]
    bytes_forward: list[float]
    bytes_backward: list[float]
    forward: list[float]
    both: list[float]
    step: float
    launch: float


def layers_of(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> LayerTimes | None:
    """The layers of a run; None where it has timed none.

    Raises UserError where notes and arrays contradict each other.
    """
    noted = (record.get("notes") or {}).get("layers")
    if noted is None or "layer_both" not in samples:
        return None
    columns: dict[str, Any] = {item.name: noted.get(item.name) for item in fields(LayerTimes)[:7]}
    count = len(columns["name"] or ())
    if not count or any(len(column or ()) != count for column in columns.values()):
        raise UserError("the lists of notes.layers have no or different lengths")
    for name, layers in (("forward", count), ("both", count), ("step", 1), ("launch", 1)):
        seconds = _seconds(samples, f"layer_{name}", layers)
        columns[name] = seconds if name in ("forward", "both") else seconds[0]
    return LayerTimes(**columns)


def _seconds(samples: Mapping[str, NDArray[Any]], name: str, layers: int) -> list[float]:
    """Medians over the rounds and means over the ranks, of each layer or of one array."""
    values = samples.get(name, np.zeros(0))
    values = values.reshape(len(values), layers, -1) if values.size else values
    if not values.size or not (values > 0).all():
        raise UserError(f"{name} is not positive times by [round, layer, rank]")
    return [float(value) for value in np.median(values, axis=0).mean(axis=-1)]
