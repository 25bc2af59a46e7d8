"""The results folder that mutations begin with: all its runs are whole."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import write_plan_file
from scalesweep.core.record import SAMPLES, write_record
from tests.fakes.plan import whole_plan
from tests.fakes.training import SITE, Training, make_training

GOOD, TOUCHED = 3, 5  # repeats of every point
POINTS = 5


def _environment(ranks: int) -> dict[str, Any]:
    hardware = {"cpu_model": "x", "cpus": 4, "gpus": [{"name": "g", "max_sm_clock_mhz": 1400}]}
    rows = [
        {"host": f"n{rank % 2}", "affinity": "0-3", "pid": rank, "hardware": hardware}
        for rank in range(ranks)
    ]
    return {
        "resources": {"hosts": [f"n{rank % 2}" for rank in range(ranks)], "slurm_nodes": []},
        "environment": {
            "ranks": rows, "versions": {"python": "3.11", "tensorflow": "2.18.1"},
            "variables": {"OMP_NUM_THREADS": "4"},
            "node": {"host": "n0", "cpu_model": "x", "cores": 4, "memory_bytes": 2**34, "gpus": []},
        },
        "git": {"commit": "0" * 40, "dirty": False}, "command": ["python", "main.py"],
        "order": {"seed": 1, "position": 1, "of": 9},
    }  # fmt: skip


def make_base(root: Path) -> None:
    """Three points of training with power, and two of an external program, all runs whole."""
    repeats = GOOD + TOUCHED
    train = Training(
        {"ranks": [1, 2, 4]},
        repeats=repeats,
        work=["ranks"],
        fixed={"target_accuracy": 0.8},
        planned=lambda point: 1600,
        changes=lambda point, repeat: _environment(point["ranks"]),
        arrays=lambda arrays, point, repeat: arrays.update(
            span_input=arrays["local_times"] * 0.1, span_compute=arrays["local_times"] * 0.7
        ),
    )
    make_training(root, train)
    entry = json.loads((root / "plan.json").read_text())["experiments"][0]
    runs = [
        _stranger(root / "runs" / SITE, size, repeat)
        for size in (1, 2)
        for repeat in range(repeats)
    ]
    other = {
        "name": "strangers", "benchmark": "stranger", "axes": ["size"], "runs": runs,
        "fixed": {"ranks": 1}, "main_metric": "rate", "points": 2,
    }  # fmt: skip
    plan = whole_plan({"campaign": "hostile", "site": SITE, "experiments": [entry, other]})
    write_plan_file(root / "plan.json", plan)
    for name in ("tables", "summary.parquet"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _stranger(folder: Path, size: int, repeat: int) -> dict[str, Any]:
    point = {"ranks": 1, "size": size}
    run_id = f"stranger-r1-{digest_of([size, repeat], 6)}"
    value = size + repeat / 100
    metrics = {
        "rate": {"value": value, "unit": "items/s", "better": "higher", "scope": "total"},
        "loss": {"value": 1 / value, "unit": "1", "better": "lower", "scope": "rank"},
    }
    record = {
        "run_id": run_id, "benchmark": "stranger", "version": 1, "point": point, "repeat": repeat,
        "site": SITE, "source": "measured", "started": f"2026-03-01T08:{repeat:02}:00+00:00",
        "ended": f"2026-03-01T08:{repeat:02}:10+00:00", "wall_s": 9.5, "attempt": 1, "phases": {},
        "metrics": metrics, "work": {}, **_environment(1),
        "notes": {"extract": {"extract_digest": "ab", "metrics": {"loss": {"matches": 3}}}},
    }  # fmt: skip
    samples = folder / SAMPLES
    np.savez(samples, loss=np.linspace(1, 1 / value, 3))
    write_record(folder / run_id, record, samples)
    return {"run_id": run_id, "repeat": repeat, "point": point, "status": "new"}
