"""What a program leaves of its run: native.json and samples.npz. NumPy only.

The launcher checks the same when it makes a record of it (docs/reference/programs.md).
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypedDict

import numpy as np


class Metric(TypedDict):
    """A number that a run has measured."""

    value: float  # in `unit`; finite
    unit: str
    better: Literal["lower", "higher"]
    scope: Literal["total", "rank"]  # of all ranks together, or the mean over ranks


class Work(TypedDict, total=False):
    """How much was done, over all ranks; what does not apply is left out."""

    samples_per_epoch: int
    bytes_per_epoch: int  # read from files
    samples: int  # handled in `phases`, over all epochs
    phases: list[str]


def metric(
    value: float,
    unit: str,
    better: Literal["lower", "higher"] = "lower",
    scope: Literal["total", "rank"] = "total",
) -> Metric:
    """Return a metric; `value` may be NumPy's."""
    return {"value": float(value), "unit": unit, "better": better, "scope": scope}


def write(out: Path, samples: Mapping[str, np.ndarray], content: dict[str, Any]) -> None:
    """Write ``samples.npz`` and then `content` as ``native.json`` to `out`; on rank 0 only.

    `samples` are float arrays whose last axis is the rank.
    Raises ValueError when a number of native.json is not finite.
    """
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(array, np.float64) for name, array in samples.items()}
    write_atomically(out / "samples.npz", lambda file: np.savez(file, **arrays))
    write_atomically(out / "native.json", lambda file: file.write(text.encode()))


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` with a temporary file next to `path`, then rename it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with partial.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
