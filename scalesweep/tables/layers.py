"""What a run that times the layers of a model leaves in its row of the summary: ``_layers``.

Of each layer its name, kind, how many there are, FLOP and bytes, and seconds: medians over the
rounds, means over the ranks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.core.errors import UserError
from scalesweep.core.record_check import MAX_NUMBER

LAYERS = "_layers"
MAX_LAYERS = 5000
_COSTS = ("flop_forward", "flop_backward", "bytes_forward", "bytes_backward")
_MAX_NAME = 200


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

    @staticmethod
    def from_text(text: str) -> "LayerTimes":
        """What ``layers_text`` has written."""
        return LayerTimes(**json.loads(text))


def layers_text(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> str | None:
    """``LayerTimes`` of a run as JSON; None where it has timed no layers.

    Raises UserError where notes and arrays contradict each other.
    """
    notes = record.get("notes") or {}
    noted = notes.get("layers") if isinstance(notes, dict) else None
    if not isinstance(noted, dict) or "layer_both" not in samples:
        return None
    names = [field.name for field in fields(LayerTimes)][: 3 + len(_COSTS)]
    columns = {name: noted.get(name) for name in names}
    count = len(noted["name"]) if isinstance(noted.get("name"), list) else 0
    if not 0 < count <= MAX_LAYERS:
        raise UserError(f"notes.layers.name is not a list of 1 to {MAX_LAYERS:,} names")
    for name, column in columns.items():
        _check(name, column, count)
    ranks = int(record["point"]["ranks"])
    timed = {name: _seconds(samples, f"layer_{name}", ranks, count) for name in ("forward", "both")}
    alone = {name: _seconds(samples, f"layer_{name}", ranks)[0] for name in ("step", "launch")}
    return json.dumps(asdict(LayerTimes(**columns, **timed, **alone)))  # type: ignore[arg-type]


def _check(name: str, column: Any, count: int) -> None:
    if not isinstance(column, list) or len(column) != count:
        raise UserError(f"notes.layers.{name} is not a list of {count} values")
    for value in column:
        if name in ("name", "kind"):
            good = isinstance(value, str) and 0 < len(value) <= _MAX_NAME and value.isprintable()
        else:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and 0 <= value < MAX_NUMBER
        if not good:
            raise UserError(f"notes.layers.{name}: {str(value)[:40]!r} is not a {_KIND[name]}")


_KIND = {"name": "name", "kind": "name", "count": "number", **dict.fromkeys(_COSTS, "number")}


def _seconds(
    samples: Mapping[str, NDArray[Any]], name: str, ranks: int, layers: int | None = None
) -> list[float]:
    """Medians over the rounds and means over the ranks, of each layer or (None) of one array."""
    array = samples.get(name)
    shape: Sequence[int | None] = (None, ranks) if layers is None else (None, layers, ranks)
    fits = array is not None and array.ndim == len(shape) and array.dtype.kind in "fiu"
    if not fits or not array.size or array.shape[1:] != tuple(shape[1:]):  # type: ignore[union-attr]
        expected = "[round, rank]" if layers is None else "[round, layer, rank]"
        raise UserError(f"{name} is not {expected}")
    assert array is not None
    values = array.astype(np.float64, copy=False)
    if not (values.min() > 0 and values.max() < MAX_NUMBER):
        raise UserError(f"{name} holds what is no positive time")
    return [float(value) for value in np.atleast_1d(np.median(values, axis=0).mean(axis=-1))]
