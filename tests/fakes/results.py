"""A results folder with made-up, reproducible runs (marked simulated) for figure and report tests.

Times follow a simple machine: reading slows down beyond 64 ranks, later epochs come from memory,
and the closing barrier costs time that grows with the ranks.
"""

import csv
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from scalesweep.analysis.table_io import write_parquet, write_tables
from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import Plan, read_plan
from scalesweep.core.record import RECORD
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.slurm.job_table import COLUMNS
from scalesweep.tables.summary import build_summary
from tests.fakes.plan import whole_plan
from tests.fakes.records import times, write_run

Point = dict[str, Any]
SITE = "daint-like"


@dataclass
class Fake:
    """An experiment to make up; ``fate`` gives each run done, new, or a cause of failure."""

    name: str
    axes: Mapping[str, Sequence[Any]]
    scaling: str = "none"
    linked: Mapping[str, Callable[[Point], Any]] = field(default_factory=dict)
    repeats: int = 3
    epochs: int = 5
    noise: float = 0.01
    speed: Callable[[Point], float] = lambda point: 1.0
    fate: Callable[[Point, int], str] = lambda point, repeat: "done"
    excluded: Callable[[Point], str] = lambda point: ""
    source: str = "simulated"
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    description: str = ""
    predict: Sequence[int] = ()
    environment: Callable[[Point, int], Mapping[str, Any]] = lambda point, repeat: {}


def io_rate(ranks: int) -> float:
    """Share of the ideal rate of reading that a rank still gets."""
    return 1 / (1 + (ranks / 1024) ** 1.2)


def demo() -> list[Fake]:
    return [
        Fake(
            "io_weak_scaling",
            {"ranks": [2**i for i in range(11)]},
            "weak",
            repeats=3,
            fate=lambda p, r: "NODE_FAIL" if p["ranks"] == 512 else
            "TIMEOUT" if (p["ranks"], r) == (1024, 2) else "done",
            environment=lambda p, r: {"tensorflow": "2.17.0"} if p["ranks"] == 32 else {},
            description="Reading CosmoFlow samples, one rank per node.",
        ),
        Fake(
            "thread_pools",
            {"inter_threads": [0, 1, 2, 3, 4], "intra_threads": [0, 6, 12, 24, 36, 48]},
            speed=lambda p: (1.0 if p["intra_threads"] in (12, 24) else 0.7)
            * (0.6 if p["inter_threads"] == 1 else 1 + 0.02 * p["inter_threads"]),
            fate=lambda p, r: {(4, 48): "OUT_OF_MEMORY", (3, 36): "new"}.get(
                (p["inter_threads"], p["intra_threads"]), "done"
            ),
            excluded=lambda p: "one thread cannot feed 48" if p["inter_threads"] == 1
            and p["intra_threads"] == 48 else "",
        ),
        Fake(
            "batch_sizes",
            {"ranks": [1, 2, 4, 8, 16], "batch_size": [1, 2, 4]},
            "strong",
            repeats=2,
            speed=lambda p: 0.6 + 0.1 * p["batch_size"],
        ),
        Fake(
            "models",
            {"model": ["alexnet", "resnet50", "vgg16", "inception3"]},
            linked={
                "image_size": lambda p: {"alexnet": 227, "inception3": 299}.get(p["model"], 224)
            },
            speed=lambda p: {"alexnet": 4.0, "vgg16": 0.6, "inception3": 0.8}.get(p["model"], 1.0),
            repeats=6,
            noise=0.03,
        ),
        Fake(
            "parallel_reads",
            {"parallel_reads": [1, 2, 4, 8, 16]},
            speed=lambda p: min(p["parallel_reads"], 6) / 6,
            repeats=1,
        ),
        Fake(
            "allreduce",
            {"message_bytes": [2**i for i in range(10, 26, 3)]},
            metrics={"bus_bandwidth": ("bytes/s", "higher")},
            epochs=0,
        ),
        Fake("not_started", {"ranks": [1, 2, 4]}, "weak", fate=lambda p, r: "new"),
    ]  # fmt: skip


def _record(fake: Fake, run_id: str, point: Point, repeat: int, folder: Path) -> Path:
    generator = np.random.default_rng(list(run_id.encode()))
    ranks = int(point["ranks"])
    arrays: dict[str, Any] = {}
    samples = 320 * ranks if fake.scaling != "strong" else 4096
    metrics = {}
    if fake.epochs:
        base = samples / ranks / 25 / fake.speed(point)
        spread = 1 + fake.noise * generator.standard_normal((fake.epochs, ranks))
        run = 1 + fake.noise * generator.standard_normal()
        local = base * run * np.abs(spread)
        local[0] *= 3 / io_rate(ranks)
        barrier = 0.015 * base * math.log2(ranks + 1)
        arrays = times(local, np.repeat(local.max(axis=1)[:, None], ranks, 1) + barrier)
    for name, (unit, better) in fake.metrics.items():
        size = float(next(iter(point.values())))
        value = 5e9 * size / (size + 2e5) * (1 + fake.noise * generator.standard_normal())
        metrics[name] = {"value": value, "unit": unit, "better": better, "scope": "total"}
    hosts = [f"nid{i:05d}" for i in range(ranks)]
    versions = {"python": "3.11.2", "tensorflow": "2.18.1", "horovod": "0.28.1", "numpy": "2.0.2"}
    cpu = {"cpu_model": "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz", "cores": 24}
    changes: dict[str, Any] = {
        "point": point, "repeat": repeat, "site": SITE, "source": fake.source,
        "started": f"2026-03-0{1 + repeat % 9}T08:00:00.000+00:00",
        "ended": f"2026-03-0{1 + repeat % 9}T08:10:00.000+00:00",
        "wall_s": 600.0, "phases": {"import": 3.1, "init": 0.4, "timed": 500.0},
        "metrics": metrics, "work": {"samples_per_epoch": samples, "bytes_per_epoch": None},
        "resources": {"hosts": hosts, "slurm_nodes": hosts},
        "environment": {
            "ranks": [{"host": host, "affinity": "0-11"} for host in hosts],
            "versions": versions | fake.environment(point, repeat),
            "variables": {"SLURM_JOB_ID": str(1000 + repeat)},
            "node": {"host": hosts[0], "memory_bytes": 64 * 2**30, **cpu},
        },
        "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": repeat == 1},
    }  # fmt: skip
    return write_run(folder, run_id, arrays, **changes)


def _failure(run_id: str, cause: str, folder: Path, lines: Sequence[str]) -> None:
    (folder / "attempt-1").mkdir(parents=True)
    (folder / "attempt-1" / "stderr.log").write_text("\n".join(lines))
    content = {"schema": 1, "run_id": run_id, "cause": cause, "detail": f"made up: {cause}"}
    content |= {"exit_code": 1, "signal": None, "attempt": 1, "last_lines": list(lines)}
    content |= {"started": "2026-03-01T08:00:00+00:00", "ended": "2026-03-01T08:09:00+00:00"}
    (folder / "failure.json").write_text(json.dumps(content))


def make_results(
    root: Path, fakes: Sequence[Fake] | None = None, campaign: str = "cosmoflow_io", **words: Any
) -> Path:
    """Write records, plan, summary and tables below ``root``; returns ``root``. ``words``:
    ``lines`` (last lines of failures), ``description`` of the campaign."""
    folder = root / "runs" / SITE
    experiments = []
    for fake in demo() if fakes is None else fakes:
        points, excluded = [], []
        for values in itertools.product(*fake.axes.values()):
            point: Point = dict(zip(fake.axes, values, strict=True))
            point |= {name: rule(point) for name, rule in fake.linked.items()}
            point = {"ranks": 1} | point | {"epochs": fake.epochs}
            if reason := fake.excluded(point):
                excluded.append({"point": point, "reason": reason})
            else:
                points.append(point)
        entry = plan_entry(
            fake, "data_loading", points, [*fake.axes, *fake.linked], folder,
            partial(_record, fake), words.get("lines"),
        )  # fmt: skip
        experiments.append(
            entry | {"description": fake.description, "summary": "Reads a data set.",
                     "excluded": excluded, "predict": [*fake.predict]}
        )  # fmt: skip
    description = words.get("description", "Data loading at scale.")
    write_plan(root, experiments, campaign=campaign, description=description, site=SITE)
    return root


def studies_of(root: Path) -> dict[str, ExperimentResults]:
    """The experiments of a results folder with their tables, by name."""
    entries = read_plan(root / "plan.json")["experiments"]
    return {entry["name"]: load_results(entry, root / "tables") for entry in entries}


class Made(Protocol):
    """What is made up of an experiment of any kind."""

    name: str
    scaling: str
    repeats: int
    fate: Callable[[Point, int], str]


def plan_entry(
    fake: Made,
    benchmark: str,
    points: Sequence[Point],
    names: Sequence[str],
    folder: Path,
    write: Callable[[str, Point, int, Path], Path],
    lines: Sequence[str] | None = None,
) -> dict[str, Any]:
    """An experiment of a plan, whose finished runs ``write`` writes; ``names`` may vary."""
    runs = []
    for point in points:
        for repeat in range(fake.repeats):
            run_id = f"{benchmark}-r{point['ranks']}-{digest_of([fake.name, point, repeat], 6)}"
            fate = fake.fate(point, repeat)
            run = {"run_id": run_id, "repeat": repeat, "point": point, "status": fate}
            if fate == "done" and not (folder / run_id).exists():
                write(run_id, point, repeat, folder)
            elif fate not in ("done", "new"):
                run |= {"status": "failed", "cause": fate, "detail": f"made up: {fate}"}
                _failure(run_id, fate, folder / run_id, lines or ["starting", f"error: {fate}"])
            runs.append(run)
    axes = [name for name in names if len({json.dumps(run["point"][name]) for run in runs}) > 1]
    axes.sort(key=lambda name: name != "ranks")
    first = points[0]
    return {
        "name": fake.name, "benchmark": benchmark, "scaling": fake.scaling, "axes": axes,
        "fixed": {name: value for name, value in first.items() if name not in axes},
        "parameters": {
            name: {"unit": "threads" if "threads" in name else None, "doc": f"{name}."}
            for name in first
        },
        "runs": runs, "points": len(points),
    }  # fmt: skip


def write_plan(root: Path, experiments: Sequence[Mapping[str, Any]], **head: Any) -> Plan:
    """Write a plan, and the summary and the tables of its finished runs; returns the plan."""
    created = "2026-03-10T12:00:00+00:00"
    said = {"results": str(root), "created": created, "experiments": experiments, **head}
    plan = whole_plan(said)
    root.mkdir(parents=True, exist_ok=True)
    (root / "plan.json").write_text(json.dumps(plan))
    folder = root / "runs" / head["site"]
    done = dict.fromkeys(
        run["run_id"] for entry in experiments for run in entry["runs"] if run["status"] == "done"
    )
    summary = build_summary([folder / run_id / RECORD for run_id in done])
    write_parquet(summary, root / "summary.parquet", {})
    write_tables(make_tables(summary, plan, runs=folder), root / "tables")
    return plan


def write_jobs(root: Path, *changes: dict[str, Any]) -> None:
    """A table of jobs, each as the first one but for its changes."""
    job = {
        "run_id": "a", "state": "COMPLETED", "exit_code": 0, "partition": "normal", "nodes": 4,
        "cpus": 96, "asked_s": 3600, "elapsed_s": 600, "asked_mem_bytes": 64 * 2**30,
        "max_rss_bytes": 3 * 2**30, "submitted": "2026-03-01T08:00:00+00:00",
        "started": "2026-03-01T08:01:00+00:00", "ended": "2026-03-01T08:11:00+00:00",
        "wait_s": 60.0, "program_s": 580.0, "held_s": 20.0, "node_hours": 4 / 6,
        "node_list": "nid[1-4]",
    }  # fmt: skip
    with (root / "jobs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(COLUMNS))
        writer.writeheader()
        writer.writerows({"job_id": 10 + n, **job, **change} for n, change in enumerate(changes))
