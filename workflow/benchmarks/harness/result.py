"""Writing a run's result: native.json and samples.npz."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from harness import facts
from harness.native import Metric, Native, RankFacts, Versions, Work
from harness.phases import Phases


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Call `write` with a temporary file next to `path`, then rename it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def native(
    phases: Phases,
    ranks: list[RankFacts],
    versions: Versions,
    work: Work,
    metrics: dict[str, Metric] | None = None,
    notes: dict[str, Any] | None = None,
    variables: dict[str, str] | None = None,
) -> Native:
    """Return the content of native.json; `ranks` are the facts of each rank in order."""
    return {
        "phases": phases.seconds,
        "phase_spans": phases.spans,
        "metrics": metrics or {},
        "work": work,
        "resources": {
            "hosts": [rank["host"] for rank in ranks],
            "slurm_nodes": [rank["slurm_node"] for rank in ranks],
        },
        "environment": {
            "ranks": ranks,
            "versions": versions,
            "variables": facts.variables() if variables is None else variables,
        },
        "notes": notes or {},
    }


def write_result(out: Path, content: Native, samples: Mapping[str, np.ndarray]) -> None:
    """Write ``samples.npz`` and then ``native.json`` to `out`; on rank 0 only.

    `samples` are float arrays whose last axis is the rank. Raises ValueError when a number of
    native.json is not finite.
    """
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    out.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.asarray(array, np.float64) for name, array in samples.items()}
    write_atomically(out / "samples.npz", lambda file: np.savez(file, **arrays))
    write_atomically(out / "native.json", lambda file: file.write(text.encode()))
