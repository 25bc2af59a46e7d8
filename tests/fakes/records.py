"""A record and arrays such as data_loading leaves, made up but for the times."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.core.record import write_record

# Times in seconds of five epochs on 2 ranks of Piz Daint, printed by cosmoflow-benchmark,
# notebooks/DataBenchmark.ipynb at b93a54a.
LOCAL = [[156.45093, 150.45677], [6.238575, 6.2450433], [6.3284893, 6.362862],
         [7.4706745, 7.60186], [6.2428102, 6.2542]]  # fmt: skip
GLOBAL = [[156.47194, 156.51492], [6.2702446, 6.271353], [6.382362, 6.3806553],
          [7.6232605, 7.6234684], [6.2680063, 6.268879]]  # fmt: skip


def make_record(run_id: str = "data_loading-r2-0", **changes: Any) -> dict[str, Any]:
    record = {
        "run_id": run_id, "benchmark": "data_loading", "version": 1,
        "point": {"ranks": 2, "batch_size": 4, "shard": True}, "repeat": 0, "site": "daint",
        "source": "measured", "started": "2020-08-06T15:25:54Z", "ended": "2020-08-06T15:40:00Z",
        "wall_s": 200.5, "attempt": 1, "phases": {}, "metrics": {},
        "work": {"samples_per_epoch": 640, "bytes_per_epoch": None},
        "resources": {"hosts": ["a", "b"], "slurm_nodes": [None, None]}, "environment": {},
        "notes": {}, "git": None, "command": [],
    }  # fmt: skip
    return {**record, **changes}


def times(local: Any = LOCAL, total: Any = GLOBAL) -> dict[str, Any]:
    return {"local_times": np.array(local), "global_times": np.array(total)}


def write_run(root: Path, run_id: str, arrays: dict[str, Any], **changes: Any) -> Path:
    """A finished run below ``root``, with arrays if there are any; returns its record."""
    (root / run_id).mkdir(parents=True, exist_ok=True)
    samples = root / "samples.npz" if arrays else None
    if samples:
        np.savez(samples, **arrays)
    return write_record(root / run_id, make_record(run_id, **changes), samples)


def profiled_run(root: Path, name: str, ranks: int, files: Mapping[str, bytes]) -> dict[str, Any]:
    """A run under a profiler, ``RUN_ID.KIND``, with the files that it left; its entry in a plan."""
    run_id, _, kind = name.rpartition(".")
    paths = {f"profile/{file}": content for file, content in files.items()}
    for path, content in paths.items():
        (root / name / "attempt-1" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / name / "attempt-1" / path).write_bytes(content)
    profile = {"kind": kind, "files": [*paths]}
    write_record(root / name, make_record(run_id, attempt=1, profile=profile), None)
    return {"run_id": name, "kind": kind, "point": {"ranks": ranks}, "status": "done"}
