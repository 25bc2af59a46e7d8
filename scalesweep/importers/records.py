"""From runs that other programs measured to records, and a campaign that shows them."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from scalesweep.benchmark import Benchmark, load_benchmark
from scalesweep.errors import UserError
from scalesweep.importers.cosmoflow import HISTORY, CosmoflowRun, Refusal
from scalesweep.record import (
    RECORD,
    SAMPLES,
    BadRecord,
    canonical_json,
    file_digest,
    read_record,
    write_record,
)

THREADS = ("inter_threads", "intra_threads")


def import_runs(
    runs: Sequence[CosmoflowRun], runs_folder: Path
) -> tuple[list[dict[str, Any]], list[Refusal]]:
    """Write a record for every run below ``runs_folder``; returns the records' points.

    Runs of one point become its repeats in the order given. A run that was imported before keeps
    its record; an id that holds something else is refused, never overwritten.
    """
    benchmark = load_benchmark("data_loading")
    seen: dict[str, int] = {}
    written: list[dict[str, Any]] = []
    refusals: list[Refusal] = []
    for run in runs:
        try:
            point = _complete(benchmark, run)
            repeat = seen.get(benchmark.run_id(point, -1), 0)
            _write(benchmark, run, point, repeat, runs_folder)
        except UserError as error:
            refusals.append(Refusal(run.folder, str(error)))
            continue
        seen[benchmark.run_id(point, -1)] = repeat + 1
        written.append({"point": point, "repeat": repeat})
    return written, refusals


def _complete(benchmark: Benchmark, run: CosmoflowRun) -> dict[str, Any]:
    where = str(run.folder)
    point = {
        **benchmark.defaults,
        **{
            name: benchmark.parameter(name, where).normalise(value, where)
            for name, value in run.point.items()
        },
    }
    benchmark.check_point(point, where)
    return point


def _write(
    benchmark: Benchmark, run: CosmoflowRun, point: dict[str, Any], repeat: int, runs_folder: Path
) -> None:
    run_id = benchmark.run_id(point, repeat)
    folder = runs_folder / run_id
    source = file_digest(run.folder / HISTORY)
    if (folder / RECORD).exists():
        if _imported_from(folder / RECORD) == source:
            return
        raise UserError(
            f"{run_id} on this site already holds another result; import under another site"
        )
    # The history's own age is the only date that the original leaves.
    modified = datetime.fromtimestamp((run.folder / HISTORY).stat().st_mtime, UTC)
    stamp = modified.isoformat(timespec="seconds")
    record = {
        "run_id": run_id,
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "point": point,
        "repeat": repeat,
        "site": runs_folder.name,
        "source": "imported",
        "started": stamp,
        "ended": stamp,
        "wall_s": None,
        "attempt": 1,
        "phases": {},
        "metrics": {},
        "work": {"samples_per_epoch": run.samples_per_epoch, "bytes_per_epoch": None},
        "resources": {"hosts": [], "slurm_nodes": []},
        "environment": {"ranks": [], "versions": {}, "variables": {}, "node": {}},
        "notes": {
            "imported_from": str(run.folder),
            "importer": "cosmoflow-benchmark",
            "history_blake2b": source,
            "parameters": "what the source does not state stands at the benchmark's default",
            "dates": "started and ended are the time the history file was last modified",
        },
        "git": None,
        "command": [],
    }
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        samples = Path(scratch) / SAMPLES
        np.savez(samples, local_times=run.local_times, global_times=run.global_times)
        write_record(folder, record, samples)


def _imported_from(path: Path) -> str | None:
    try:
        digest = read_record(path)["notes"].get("history_blake2b")
    except BadRecord:
        return None
    return digest if isinstance(digest, str) else None


def campaign_of(
    written: Sequence[Mapping[str, Any]], name: str, site: str, results: str
) -> dict[str, Any]:
    """A campaign file's content that plans exactly the imported points.

    Points that share all but the rank count make a scaling experiment, points that share all
    but the thread pools a thread experiment; what fits neither stands in ``other_points``.
    """
    benchmark = load_benchmark("data_loading")
    points = [entry["point"] for entry in written]
    scaling = _alike(points, vary=("ranks",))
    threads = _alike(points, vary=THREADS)
    used = {id(point) for point in [*scaling, *threads]}
    others = [point for point in points if id(point) not in used]
    experiments: dict[str, Any] = {}
    for title, members in (
        ("io_scaling", scaling),
        ("thread_pools", threads),
        ("other_points", others),
    ):
        if not members:
            continue
        experiments[title] = {
            "benchmark": benchmark.name,
            "scaling": _scaling(benchmark, members) if title == "io_scaling" else "none",
            "linked": _changed(benchmark, members),
            "repeats": 1
            + max(
                entry["repeat"] for entry in written if any(entry["point"] is m for m in members)
            ),
        }
    return {
        "campaign": name,
        "description": "Results of cosmoflow-benchmark's data benchmark, imported.",
        "site": site,
        "results": results,
        "experiments": experiments,
    }


def _alike(points: Sequence[dict[str, Any]], vary: tuple[str, ...]) -> list[dict[str, Any]]:
    """Points of the groups that are equal but for ``vary`` and take several values of it."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        rest = {name: value for name, value in point.items() if name not in vary}
        groups.setdefault(canonical_json(rest), []).append(point)
    return [
        point
        for group in groups.values()
        if len({tuple(p[name] for name in vary) for p in group}) > 1
        for point in group
    ]


def _scaling(benchmark: Benchmark, points: Sequence[dict[str, Any]]) -> str:
    per_rank = {(benchmark.total_work(point) or 0) / point["ranks"] for point in points}
    return "weak" if len(per_rank) == 1 else "none"


def _changed(benchmark: Benchmark, points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The points as ``linked`` entries: every parameter that differs from its default anywhere."""
    names = [
        name for name, default in benchmark.defaults.items()
        if name == "ranks" or any(point[name] != default for point in points)
    ]  # fmt: skip
    unique = {benchmark.run_id(point, 0): point for point in points}
    ordered = sorted(unique.values(), key=lambda point: point["ranks"])
    return [{name: point[name] for name in names} for point in ordered]


def write_campaign(content: Mapping[str, Any], path: Path) -> None:
    """Write a generated campaign file."""
    text = yaml.safe_dump(dict(content), sort_keys=False, width=100)
    path.write_text("# Written by import_cosmoflow: the points that were imported.\n" + text)
