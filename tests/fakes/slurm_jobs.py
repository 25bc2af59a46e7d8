"""Jobs as Slurm's accounting has them, and what the launcher leaves of a failed run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalesweep.slurm.sacct import Job

ASKED = {"minutes": 5, "mem_mb": 1024, "nodes": 2}
JOB = Job(
    job_id=12, state="FAILED", state_detail="", exit_code=1, signal=0,
    submitted="2026-03-01T08:00:00+00:00", started="2026-03-01T08:00:30+00:00",
    ended="2026-03-01T08:10:30+00:00", elapsed_s=600, limit_s=3600, nodes=2, cpus=48,
    node_list="node[1-2]", partition="main", asked_mem_bytes=2**30, max_rss_bytes=2**29,
)  # fmt: skip
TIMEOUT = replace(JOB, state="TIMEOUT", exit_code=0)


def by_launcher(folder: Path, **words: Any) -> dict[str, Any]:
    failure = {
        "schema": 1, "run_id": "a", "cause": "NON_ZERO_EXIT", "detail": "exit code 3",
        "exit_code": 3, "signal": None, "attempt": 2, "job_id": 12,
        "started": "2026-03-01T08:00:35+00:00", "ended": "2026-03-01T08:10:20.5+00:00",
        "last_lines": ["x"], **words,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "failure.json").write_text(json.dumps(failure))
    return failure
