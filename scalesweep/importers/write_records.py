"""From runs that other programs measured to records."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json
from scalesweep.core.record import (
    FAILURE,
    RECORD,
    SAMPLES,
    BadRecord,
    checksums,
    verify_files,
    write_record,
)
from scalesweep.importers.imported_run import GPU, ImportedRun, Refusal
from scalesweep.planning.record_reader import read_record
from scalesweep.planning.run_state import set_aside

_NO_ENVIRONMENT: dict[str, Any] = {"ranks": [], "versions": {}, "variables": {}, "node": {}}
SOURCE_DIGEST = "source_blake2b"


@dataclass(frozen=True)
class Written:
    """A run whose record is there: its complete point, and which repeat of it."""

    benchmark: Benchmark
    point: Mapping[str, Any]
    repeat: int
    variant: Mapping[str, str]


def import_runs(
    runs: Sequence[ImportedRun],
    runs_folder: Path,
    startable: bool = False,
    benchmarks: Mapping[str, Benchmark] | None = None,
) -> tuple[list[Written], list[Refusal]]:
    """Write a record for every run below ``runs_folder``.

    With ``startable`` points that the benchmark could not start itself are refused, as a campaign
    of a site with a launcher refuses them. ``benchmarks`` are those that the import made.

    Runs of one point become its repeats in the order given. A run that was imported before keeps
    its record; an id that holds something else is refused, never overwritten. So are a second
    copy of a run, and a run that differs from the first of its point in its ``variant``.
    """
    writer = _Writer(runs_folder, startable, benchmarks or {})
    written: list[Written] = []
    refusals: list[Refusal] = []
    for run in runs:
        try:
            written.append(writer.write(run))
        except UserError as error:
            refusals.append(run.refused(str(error)))
    return written, refusals


class _Writer:
    """Writes records and remembers what it wrote."""

    def __init__(
        self, runs_folder: Path, startable: bool, benchmarks: Mapping[str, Benchmark]
    ) -> None:
        self.runs_folder = runs_folder
        self.startable = startable
        self.benchmarks = dict(benchmarks)
        # By point: the runs written so far.
        self.repeats: dict[str, list[ImportedRun]] = {}

    def write(self, run: ImportedRun) -> Written:
        """Write the record of a run; raises UserError with the reason if it is refused."""
        if run.benchmark not in self.benchmarks:
            self.benchmarks[run.benchmark] = load_benchmark(run.benchmark)
        benchmark = self.benchmarks[run.benchmark]
        point = _complete(benchmark, run, self.startable)
        before = self.repeats.setdefault(canonical_json([benchmark.name, point]), [])
        for other in before:
            if other.source_digest == run.source_digest:
                raise UserError(f"the same run as in {other.place}")
        if before:
            _check_variant(run, before[0])
        _write(benchmark, run, point, len(before), self.runs_folder)
        before.append(run)
        return Written(benchmark, point, len(before) - 1, run.variant)


def _complete(benchmark: Benchmark, run: ImportedRun, startable: bool) -> dict[str, Any]:
    """The run's point with the defaults of what the source does not state."""
    where = str(run.file)
    try:
        stated = {
            name: benchmark.parameter(name, where).normalise(value, where)
            for name, value in run.point.items()
        }
        point = {**benchmark.defaults, **stated}
        if startable:
            benchmark.check_point(point, where)
    except UserError as error:
        # The refusal names the file by itself.
        raise UserError(str(error).removeprefix(f"{where}: ")) from None
    return point


def _check_variant(run: ImportedRun, first: ImportedRun) -> None:
    """Unlike machines or settings are no repeats of each other."""
    names = sorted({*run.variant, *first.variant})
    unlike = [name for name in names if run.variant.get(name) != first.variant.get(name)]
    if GPU not in run.variant or GPU not in first.variant:
        # Not every log names the machine; a flag that is not stated was not given.
        unlike = [name for name in unlike if name != GPU]
    if unlike:
        own, others = (
            ", ".join(f"{name} {it.variant.get(name, 'not stated')}" for name in unlike)
            for it in (run, first)
        )
        raise UserError(
            f"the same point as in {first.place}, but {own} instead of {others}; "
            "import it under another site and results folder"
        )


def _write(
    benchmark: Benchmark,
    run: ImportedRun,
    point: Mapping[str, Any],
    repeat: int,
    runs_folder: Path,
) -> None:
    run_id = benchmark.run_id(point, repeat)
    folder = runs_folder / run_id
    if (folder / RECORD).exists():
        try:
            there = read_record(folder / RECORD)
            verify_files(folder, checksums(there))
        except BadRecord as error:
            set_aside(folder, str(error).removeprefix(f"{run_id}: "))
        else:
            if there["notes"].get(SOURCE_DIGEST) == run.source_digest:
                return
            raise UserError(
                f"{run_id} on this site already holds another result; import under another site"
            )
    samples_per_epoch = run.samples_per_epoch
    if samples_per_epoch is None:
        samples_per_epoch = benchmark.total_work(point)
    record = {
        "run_id": run_id,
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "point": dict(point),
        "repeat": repeat,
        "site": runs_folder.name,
        "source": "imported",
        "started": _stamp(run.started),
        "ended": _stamp(run.ended),
        "wall_s": None,
        "attempt": 1,
        "phases": dict(run.phases),
        "metrics": dict(run.metrics),
        "work": {"samples_per_epoch": samples_per_epoch or None, "bytes_per_epoch": None},
        "resources": {"hosts": [], "slurm_nodes": []},
        "environment": {
            "ranks": [],
            "versions": {},
            "variables": {},
            "node": {},
            **run.environment,
        },
        "notes": {
            "imported_from": str(run.file),
            SOURCE_DIGEST: run.source_digest,
            "parameters": "what the source does not state has the benchmark's default",
            **run.notes,
        },
        "git": None,
        "command": list(run.command),
    }
    if run.parts:
        record["parts"] = dict(run.parts)
    if run.phase_spans:
        record["phase_spans"] = [list(span) for span in run.phase_spans]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        samples = Path(scratch) / SAMPLES
        np.savez(samples, **run.samples)
        write_record(folder, record, samples)
    (folder / FAILURE).unlink(missing_ok=True)  # of an earlier record that was set aside


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
