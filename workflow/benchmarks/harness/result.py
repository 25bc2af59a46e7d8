"""Writing a run's result: native.json and samples.npz."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from harness.native import Metric, Work
from harness.phases import Phases


def write_result(
    out: Path,
    samples: Mapping[str, np.ndarray],
    *,
    phases: Phases,
    ranks: list[dict[str, Any]],
    versions: dict[str, str | None],
    variables: dict[str, str],
    work: Work,
    metrics: dict[str, Metric],
    notes: dict[str, Any],
) -> None:
    """Write ``samples.npz`` and then ``native.json`` to `out`; on rank 0 only.

    `samples` are float arrays whose last axis is the rank, `ranks` the facts of each in order;
    `phases` and `variables` are those of rank 0.
    Raises ValueError when a number of native.json is not finite.
    """
    content: dict[str, Any] = {
        "phases": phases.seconds,
        "phase_spans": phases.spans,
        "metrics": metrics,
        "work": work,
        "resources": {
            "hosts": [rank["host"] for rank in ranks],
            "slurm_nodes": [rank["slurm_node"] for rank in ranks],
        },
        "environment": {"ranks": ranks, "versions": versions, "variables": variables},
        "notes": notes,
    }
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(array, np.float64) for name, array in samples.items()}
    _write_atomically(out / "samples.npz", lambda file: np.savez(file, **arrays))
    _write_atomically(out / "native.json", lambda file: file.write(text.encode()))


def _write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` with a temporary file next to `path`, then rename it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    with partial.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
