"""What a probe measured within a run, as its row of the summary keeps it."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.core.errors import UserError
from scalesweep.core.record_check import MAX_NUMBER

SWEEP = "_sweep"  # column of the summary
SECONDS = "sweep_seconds"  # array of the samples
MAX_VALUES = 10_000


def sweep_text(record: Mapping[str, Any], samples: Mapping[str, NDArray[Any]]) -> str | None:
    """The sweep of a run as JSON text for the summary; None where it is no probe's.

    By value: seconds of the slowest rank, the best, median and worst of the repeats. Raises
    UserError where times and values do not go together.
    """
    note = (record.get("notes") or {}).get("sweep")
    if note is None or SECONDS not in samples:
        return None
    seconds = samples[SECONDS]
    if seconds.ndim != 3 or seconds.dtype.kind not in "fiu" or not seconds.size:
        raise UserError(
            f"{SECONDS} is {seconds.dtype} of shape {seconds.shape}, not [value, repeat, rank]"
        )
    if not (np.isfinite(seconds).all() and (seconds > 0).all()):
        raise UserError(f"{SECONDS} holds a number that is no time")
    try:
        values, amounts = list(note["values"]), [float(amount) for amount in note["amounts"]]
        by, unit = str(note["by"]), str(note["amount_unit"])
        value_unit = note["unit"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"notes.sweep cannot be read: {error!r}") from None
    plain = all(isinstance(v, int | float | str) and not isinstance(v, bool) for v in values)
    if not plain or not len(values) == len(amounts) == len(seconds) <= MAX_VALUES:
        raise UserError(f"notes.sweep has other values than {SECONDS}")
    if not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise UserError("notes.sweep.amounts holds a number that is no amount")
    moved = note.get("moved")
    if moved is not None and not (
        isinstance(moved, list) and len(moved) == len(values) and all(map(_is_size, moved))
    ):
        raise UserError("notes.sweep.moved is not a number of bytes for each value")
    slowest = seconds.max(axis=2)
    times = np.stack([slowest.min(axis=1), np.median(slowest, axis=1), slowest.max(axis=1)], axis=1)
    collective = note.get("collective")
    return json.dumps(
        {
            "by": by, "unit": None if value_unit is None else str(value_unit), "amount_unit": unit,
            "collective": None if collective is None else str(collective),
            "values": values, "amounts": amounts, "times": times.tolist(), "moved": moved,
        }
    )  # fmt: skip


def _is_size(value: Any) -> bool:
    """Whether it is a finite number above 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < MAX_NUMBER
