"""From runs that other programs measured to records.

Imports into a site add up: what a run was read from tells whether it is there already, and a new
run of a point takes the next repeat that is free, so that the order of imports does not matter.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, natural_order
from scalesweep.core.record import (
    FAILURE,
    RECORD,
    SAMPLES,
    read_samples,
    write_record,
)
from scalesweep.core.record_check import BadRecordError
from scalesweep.importers.imported_run import (
    FILE_DATES,
    GPU,
    ImportedRun,
    NotRead,
    Refusal,
    shown,
)
from scalesweep.importers.made_benchmark import make_benchmark
from scalesweep.state.record_reader import read_record
from scalesweep.state.set_aside import set_aside

SOURCE_DIGEST = "source_blake2b"
IMPORTED = "imported"
PRINTED = "printed"  # note of runs whose numbers were rounded for print: many are equal
MOVED = ".moved"  # end of the names of a run's files that is now a run of another point


@dataclass(frozen=True)
class Written:
    """A run whose record is there: its complete point, and which repeat of it.

    ``variant`` as of an ``ImportedRun``; ``file`` and ``line`` are where it was read; ``digest`` is
    of what it was read from, ``values`` of its numbers alone (empty where they are as rounded as a
    table prints them), ``metrics`` of these with their units, of its parts and its
    functions.
    """

    benchmark: Benchmark
    point: Mapping[str, Any]
    repeat: int
    variant: Mapping[str, str]
    file: str = ""
    line: int = 0
    digest: str = ""
    values: str = ""
    metrics: str = ""
    epochs_run: float | None = None
    unfinished: str = ""
    failed: str = ""
    command: tuple[str, ...] = ()  # as its log shows it
    rate: float | None = None  # its benchmark's main metric, where that is so much per second

    @property
    def run_id(self) -> str:
        """The folder of its record."""
        return self.benchmark.run_id(self.point, self.repeat)

    @property
    def place(self) -> str:
        """Where it was read."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def order(self) -> tuple[Any, ...]:
        """A key that sorts runs by where they were read, whatever the order of their imports."""
        return natural_order(Path(self.file)), self.line, self.digest


def write_runs(
    items: Iterable[ImportedRun | Refusal | NotRead], store: "RecordStore"
) -> Iterator[Written | Refusal | NotRead]:
    """Write a record for every run as it comes; yields what became of it, and all else as it is.

    A run that was imported before keeps its record. A second copy of a run is named and left out.
    """
    for item in items:
        if not isinstance(item, ImportedRun):
            yield item
            continue
        try:
            yield store.write(item)
        except _CopyError as error:
            yield item.refused(str(error), copy=True)
        except UserError as error:
            yield item.refused(str(error))


class _CopyError(UserError):
    """The run is there already."""


@dataclass
class RecordStore:
    """The imported records of a site.

    With ``startable`` points that the benchmark could not start itself are refused, as a campaign
    of a site with a launcher refuses them. ``unreadable`` names records of no known point.
    """

    folder: Path
    startable: bool = False
    unreadable: list[str] = field(default_factory=list)
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    # By the digest of what it was read from.
    _there: dict[str, Written] = field(default_factory=dict)
    # Digests of the runs of this import.
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the records that are there; what is damaged is set aside, to be imported again."""
        for path in sorted(self.folder.glob(f"*/{RECORD}")):
            try:
                record = read_record(path)
                if record["samples"] is not None:
                    read_samples(path.parent, record)
            except BadRecordError as error:
                set_aside(path.parent, str(error).removeprefix(f"{path.parent.name}: "))
                continue
            if record["source"] == IMPORTED and "." not in path.parent.name:
                self._add_record(record, path.parent)

    def _add_record(self, record: Mapping[str, Any], folder: Path) -> None:
        try:
            benchmark = self._benchmark(str(record["benchmark"]))
            point = {**benchmark.defaults, **record["point"]}
            run = _written(benchmark, point, record)
        except (UserError, AttributeError, KeyError, TypeError, ValueError):
            self.unreadable.append(folder.name)
            return
        if run.run_id != folder.name:
            self.unreadable.append(folder.name)
        else:
            self._there[run.digest or folder.name] = run

    def _benchmark(self, name: str) -> Benchmark:
        if name not in self._benchmarks:
            # Of what an import made, the benchmark lies in the results folder.
            self._benchmarks[name] = load_benchmark(name, beside=self._results)
        return self._benchmarks[name]

    @property
    def _results(self) -> Path:
        return self.folder.parent.parent

    @property
    def runs(self) -> list[Written]:
        """All imported runs of the site, by where they were read."""
        return sorted(self._there.values(), key=lambda run: run.order)

    def write(self, run: ImportedRun) -> Written:
        """Write the record of a run unless it is there; raises UserError if it is refused."""
        known = self._benchmarks.get(run.benchmark)
        if run.made and (known is None or not run.made.metrics.keys() <= known.metrics.keys()):
            self._benchmarks[run.benchmark] = make_benchmark(
                self._results, run.benchmark, run.made.summary, run.made.parameters,
                run.made.metrics, declared=run.made.declared,
            )  # fmt: skip
        benchmark = self._benchmark(run.benchmark)
        point = _complete(benchmark, run, self.startable)
        if (before := self._there.get(run.source_digest)) is not None:
            if before.digest in self._seen:
                raise _CopyError(f"the same run as in {before.place}")
            self._seen.add(before.digest)
            numbers = _metrics_digest(run.metrics, run.parts, run.functions)
            there = (before.point, before.metrics, before.variant, before.unfinished, before.failed)
            now = (point, numbers, dict(run.variant), run.unfinished, run.failed)
            if before.benchmark is benchmark and there == now:
                return before
            # Read otherwise than before: its ranks were named, or what is known of it has changed.
            self._move(before)
        record = _record(benchmark, run, point, self._free(benchmark, point), self.folder.name)
        samples_digest = _write(self.folder / record["run_id"], record, run)
        written = _written(benchmark, point, {**record, "samples": samples_digest})
        self._there[written.digest] = written
        self._seen.add(written.digest)
        self._grown(written)
        return written

    def _grown(self, written: Written) -> None:
        """Take away a run that was cut when this file was imported before: its log has grown."""
        for run in [*self._there.values()]:
            cut = run.unfinished and run.digest not in self._seen
            if cut and (run.file, run.line) == (written.file, written.line):
                self._move(run)

    def _move(self, run: Written) -> None:
        """Take away the record of a run that is now one of another point; nothing is lost."""
        del self._there[run.digest]
        for name in (RECORD, SAMPLES):
            path = self.folder / run.run_id / name
            if path.exists():
                path.replace(path.with_name(f"{name}{MOVED}"))

    def _free(self, benchmark: Benchmark, point: Mapping[str, Any]) -> int:
        """The first repeat of a point without a record."""
        repeat = 0
        while (self.folder / benchmark.run_id(point, repeat) / RECORD).exists():
            repeat += 1
        return repeat


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


def _written(benchmark: Benchmark, point: Mapping[str, Any], record: Mapping[str, Any]) -> Written:
    """A record in few words."""
    notes, metrics = record["notes"], record["metrics"]
    gpu = record["environment"].get("node", {}).get("gpu_model")
    # Records of before did not always keep it.
    variant = notes.get("variant") or ({GPU: str(gpu)} if gpu else {})
    lines = notes.get("lines") or [0]
    samples = record["samples"]
    numbers = {name: metric["value"] for name, metric in metrics.items()}
    return Written(
        benchmark,
        dict(point),
        int(record["repeat"]),
        {str(name): str(value) for name, value in variant.items()},
        str(notes.get("imported_from", "")),
        int(lines[0]),
        str(notes.get(SOURCE_DIGEST, "")),
        "" if PRINTED in notes else digest_of([numbers, samples["blake2b"] if samples else None]),
        _metrics_digest(metrics, record.get("parts") or {}, record.get("functions") or {}),
        numbers.get("epochs_run"),
        str(record.get("unfinished", "")),
        str(record.get("failed", "")),
        tuple(map(str, record.get("command") or ())),
        _rate(metrics.get(benchmark.main_metric or "")),
    )


def _rate(metric: Mapping[str, Any] | None) -> float | None:
    """The value of a positive rate; None of anything else."""
    if metric is None or not str(metric["unit"]).endswith("/s"):
        return None
    value = metric["value"]
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _metrics_digest(
    metrics: Mapping[str, Any], parts: Mapping[str, float], functions: Mapping[str, Any]
) -> str:
    """What a corrected map, other patterns or another reader change of a run that is there."""
    by_name = {name: dict(metric) for name, metric in metrics.items()}
    return digest_of([by_name, dict(parts), dict(functions)])


def _record(
    benchmark: Benchmark, run: ImportedRun, point: Mapping[str, Any], repeat: int, site: str
) -> dict[str, Any]:
    """The record of an imported run; what its source does not state is empty or None."""
    modified = datetime.fromtimestamp(run.file.stat().st_mtime, UTC)
    samples_per_epoch = run.samples_per_epoch
    if samples_per_epoch is None:
        samples_per_epoch = benchmark.total_work(point)
    record: dict[str, Any] = {
        "run_id": benchmark.run_id(point, repeat),
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "point": dict(point),
        "repeat": repeat,
        "site": site,
        "source": IMPORTED,
        "started": _stamp(run.started or modified),
        "ended": _stamp(run.ended or modified),
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
        },
        "notes": {
            "imported_from": shown(run.file),
            SOURCE_DIGEST: run.source_digest,
            "parameters": "what the source does not state has the benchmark's default",
            **({} if run.started else {"dates": FILE_DATES}),
            **({"variant": dict(run.variant)} if run.variant else {}),
            **run.notes,
        },
        "git": None,
        "command": list(run.command),
    }
    if run.parts:
        record["parts"] = dict(run.parts)
    if run.functions:
        record["functions"] = dict(run.functions)
    if run.phase_spans:
        record["phase_spans"] = [list(span) for span in run.phase_spans]
    if run.unfinished:
        record["unfinished"] = run.unfinished
    if run.failed:
        record["failed"] = run.failed
    return record


def _write(folder: Path, record: Mapping[str, Any], run: ImportedRun) -> Mapping[str, Any] | None:
    """Write a record with its samples; returns what it says of these."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        samples = Path(scratch) / SAMPLES
        np.savez(samples, **run.samples)
        write_record(folder, record, samples)
    (folder / FAILURE).unlink(missing_ok=True)  # of an earlier record that was set aside
    kept: Mapping[str, Any] | None = read_record(folder / RECORD)["samples"]
    return kept


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
