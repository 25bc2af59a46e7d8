"""A large campaign whose runs are all made up (source: simulated), in a copy of the project.

As data_loading leaves them on a cluster with one rank per node: 5 epochs, 1 to 1,024 ranks, every
rank with its facts in the record and its times in the arrays.
"""

import contextlib
import hashlib
import io
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.projects import project
from scalesweep.config.campaign import load_campaign
from scalesweep.core.record import RECORD, SAMPLES, completed, record_text
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.state.results_folder import claim_folder
from scalesweep.state.stock import take_stock

EPOCHS = 5
# 91 points at each rank count: with 11 of them and 10 repeats 10,010 runs. The last ten are new.
NEW = 10
CAMPAIGN = """campaign: large
description: A made-up campaign of {runs:,} runs.
site: piz_daint
experiments:
  io_scaling:
    benchmark: data_loading
    scaling: weak
    axes: {{ranks: &ranks {{from: 1, to: {largest}, factor: 2}}, batch_size: [1, 2, 4, 8],
           parallel_reads: [1, 2, 4, 8, 16]}}
    repeats: {repeats}
  thread_pools:
    benchmark: data_loading
    axes: {{ranks: *ranks, inter_threads: [0, 1, 2, 3, 4], intra_threads: [0, 6, 12, 24, 36, 48]}}
    repeats: {repeats}
  pipeline:
    benchmark: data_loading
    axes: {{ranks: *ranks, apply_log: [true, false], compression: [none, GZIP],
           prefetch: [0, 1, 2, 4, 8], map_parallelism: [0, 4]}}
    repeats: {repeats}
  file_sizes:
    benchmark: data_loading
    axes: {{ranks: *ranks, samples_per_file: [1, 2, 4]}}
    repeats: {repeats}
  page_cache:
    benchmark: data_loading
    axes: {{ranks: *ranks, drop_page_cache: [false, true]}}
    repeats: {repeats}
"""


@dataclass(frozen=True)
class Made:
    """A project, its campaign file (a name), the folder of its runs, and these in two parts."""

    folder: Path
    campaign: str
    runs: Path
    done: list[str]
    new: list[str]

    @property
    def results(self) -> Path:
        """Where plan, summary, tables, figures and report go."""
        return self.folder / "results"

    def write_new(self) -> None:
        """Let the last ten runs end, too."""
        for run_id, point, repeat in _places(self.folder, self.campaign):
            if run_id in self.new:
                write_run(self.runs / run_id, point, repeat)

    def plan(self) -> None:
        """Write the plan of what is there; reads whatever record is new."""
        with contextlib.chdir(self.folder):
            campaign = load_campaign(Path(self.campaign))
            states = take_stock(campaign, campaign.unique_runs())
            write_plan(campaign, build_plan(campaign, states), as_json=True)


def make(folder: Path, repeats: int = 10, largest: int = 1024) -> Made:
    """Copy the project into ``folder`` and make up all runs of its campaign but the last ten."""
    project(folder)
    count = 91 * (int(math.log2(largest)) + 1) * repeats
    name = "large.yaml"
    text = CAMPAIGN.format(runs=count, largest=largest, repeats=repeats)
    (folder / name).write_text(text)
    claim_folder(folder / "results", "results")
    places = _places(folder, name)
    made = Made(
        folder,
        name,
        folder / "results" / "runs" / "piz_daint",
        [run_id for run_id, *_ in places[:-NEW]],
        [run_id for run_id, *_ in places[-NEW:]],
    )
    with ProcessPoolExecutor(2) as pool:
        jobs = [(made.runs / run_id, point, repeat) for run_id, point, repeat in places[:-NEW]]
        list(pool.map(write_run, *zip(*jobs, strict=True), chunksize=32))
    return made


def _places(folder: Path, name: str) -> list[tuple[str, dict[str, Any], int]]:
    """Id, point and repeat of every run of a campaign file."""
    with contextlib.chdir(folder):
        runs = load_campaign(Path(name)).unique_runs()
    return [(run_id, dict(run.point), run.repeat) for run_id, (_, run) in runs.items()]


def times_of(run_id: str, point: dict[str, Any]) -> tuple[Any, Any]:
    """Made-up local and global times ``[epoch, rank]`` in seconds, the same for the same run."""
    ranks = point["ranks"]
    draw = np.random.default_rng(list(run_id.encode()))
    rate = 20 * math.log2(2 + point["batch_size"]) * min(point["parallel_reads"], 6) ** 0.3
    rate *= 1 + 0.05 * math.log2(1 + point["intra_threads"]) - 0.02 * point["inter_threads"]
    rate *= 0.9 if point["compression"] == "GZIP" else 1.0
    base = 320 / rate * (1 + (ranks / 1500) ** 1.3) * (1 + 0.01 * draw.standard_normal())
    local = base * (1 + 0.02 * np.abs(draw.standard_normal((EPOCHS, ranks))))
    local[0] *= 3
    wait = 0.002 * math.log2(ranks + 1) * (1 + 0.05 * draw.random((EPOCHS, ranks)))
    return local, local.max(axis=1, keepdims=True) + wait


def write_run(folder: Path, point: dict[str, Any], repeat: int) -> None:
    """Write record and samples of a run, as fast as the file system takes them."""
    local, total = times_of(folder.name, point)
    archive = io.BytesIO()
    spans = {"span_input": local, "span_wait": total - local}
    np.savez(archive, local_times=local, global_times=total, **spans)
    samples = archive.getvalue()
    record = _record(folder.name, point, repeat, float(total.sum(axis=0)[0]))
    record["samples"] = {
        "file": SAMPLES,
        "bytes": len(samples),
        "blake2b": hashlib.blake2b(samples, digest_size=16).hexdigest(),
    }
    folder.mkdir(parents=True)
    (folder / SAMPLES).write_bytes(samples)
    first = int(record["samples"]["blake2b"][:3], 16)  # of the nodes that the run has had
    hosts = [f"nid{first + rank:05d}" for rank in range(point["ranks"])]
    record["resources"] = {"hosts": hosts, "slurm_nodes": hosts}
    record["environment"]["ranks"] = _ranks(hosts, first)
    (folder / RECORD).write_text(record_text(completed(record, folder.name)))


def _ranks(hosts: list[str], first: int) -> list[dict[str, Any]]:
    """Facts of the ranks, as the harness writes them."""
    hardware = {
        "cpu_model": "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz", "cpus": 24,
        "governor": "performance", "memory_bytes": 67_459_088_384, "numa_nodes": 1,
        "gpus": [], "gpu_links": {},
    }  # fmt: skip
    return [
        {
            "hardware": hardware, "visible_gpus": None, "host": host, "slurm_node": host,
            "affinity": "0-11", "pid": 4000 + (first + rank) * 7919 % 28_000,
            "omp_num_threads": None, "inter_threads": 2, "intra_threads": 12,
        }
        for rank, host in enumerate(hosts)
    ]  # fmt: skip


def _record(run_id: str, point: dict[str, Any], repeat: int, timed: float) -> dict[str, Any]:
    """A record as a run of ``data_loading`` leaves it, with ``timed`` seconds of reading."""
    ranks = point["ranks"]
    began = 1_770_000_000 + repeat * 86_400
    phases = {"import": 3.1, "init": 0.4, "data_staging": 0.02, "warmup": 2.5, "timed": timed}
    spans, at = [], float(began)
    for name, seconds in phases.items():
        spans.append([name, at, at + seconds])
        at += seconds
    return {
        "run_id": run_id, "benchmark": "data_loading", "version": 1, "point": point,
        "repeat": repeat, "site": "piz_daint", "source": "simulated",
        "started": "2026-02-01T08:00:00.000+00:00", "ended": "2026-02-01T08:10:00.000+00:00",
        "wall_s": at - began, "attempt": 1, "phases": phases, "phase_spans": spans, "metrics": {},
        "work": {
            "samples_per_epoch": 320 * ranks, "bytes_per_epoch": 320 * ranks * 16_777_344,
            "samples": 320 * ranks * EPOCHS, "phases": ["timed"],
        },
        "environment": {
            "versions": {"python": "3.11.7", "tensorflow": "2.18.1", "horovod": "0.28.1",
                         "numpy": "2.0.2", "mpi": "MPICH Version: 4.0.2"},
            "variables": {"HOROVOD_CONTROLLER": "mpi", "HOROVOD_CPU_OPERATIONS": "mpi",
                          "SLURM_JOB_ID": str(1_000_000 + repeat), "TF_USE_LEGACY_KERAS": "1"},
            "node": {
                "host": "nid00000", "cpu_model": "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz",
                "cores": 24, "affinity": "0-23", "governor": "performance", "gpus": [],
                "memory_bytes": 67_459_088_384, "kernel": "4.12.14",
            },
        },
        "energy": {"sources": [], "interval_s": 1.0, "hosts": [], "joules": None,
                   "missing": "made up", "notes": []},
        "notes": {"touched": {"sum_x": 109_885_135.0, "sum_y": -5.18}},
        "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
        "command": ["python3", "main.py", "--run", "{run_file}"],
    }  # fmt: skip
