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
    read_record,
    read_samples,
    write_record,
)
from scalesweep.core.record_check import BadRecordError
from scalesweep.importers.imported_run import FILE_DATES, ImportedRun, Item, NotRead, Refusal, shown
from scalesweep.importers.made_benchmark import make_benchmark
from scalesweep.state.set_aside import set_aside

SOURCE_DIGEST = "source_blake2b"
IMPORTED = "imported"
PRINTED = "printed"  # note of runs whose numbers were rounded for print: many are equal
MOVED = ".moved"  # end of the names of a run's files that is now a run of another point


@dataclass(frozen=True)
class Written:
    """A run whose record is there."""

    benchmark: Benchmark
    record: Mapping[str, Any]
    point: Mapping[str, Any]  # with the defaults of what its source does not state

    @property
    def run_id(self) -> str:
        """The folder of its record."""
        return str(self.record["run_id"])

    @property
    def repeat(self) -> int:
        """Which repeat of its point it is."""
        return int(self.record["repeat"])

    @property
    def variant(self) -> Mapping[str, str]:
        """As of an ``ImportedRun``."""
        return dict(self.record["notes"].get("variant", {}))

    @property
    def file(self) -> str:
        """What it was read from."""
        return str(self.record["notes"].get("imported_from", ""))

    @property
    def line(self) -> int:
        """Where it begins there; 0 if that is not known."""
        return int(self.record["notes"].get("lines", [0])[0])

    @property
    def place(self) -> str:
        """Where it was read."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def order(self) -> tuple[Any, ...]:
        """A key that sorts runs by where they were read, whatever the order of their imports."""
        return natural_order(Path(self.file)), self.line, self.digest

    @property
    def digest(self) -> str:
        """Of what it was read from."""
        return str(self.record["notes"].get(SOURCE_DIGEST, ""))

    @property
    def values(self) -> str:
        """A digest of its numbers alone; empty if they are as rounded as a table prints them."""
        numbers = {name: it["value"] for name, it in self.record["metrics"].items()}
        samples = self.record["samples"]
        rounded = PRINTED in self.record["notes"]
        return "" if rounded else digest_of([numbers, samples["blake2b"] if samples else None])

    @property
    def said(self) -> Any:
        """What a corrected map, other patterns or another reader change of a run."""
        keys = ("metrics", "parts", "functions", "unfinished", "failed")
        return [self.point, self.variant, *(self.record.get(key) or None for key in keys)]

    @property
    def unfinished(self) -> str:
        """Why it has no result; empty of a run that has one."""
        return str(self.record.get("unfinished", ""))

    @property
    def command(self) -> tuple[str, ...]:
        """As its log shows it."""
        return tuple(map(str, self.record.get("command") or ()))

    @property
    def epochs_run(self) -> float | None:
        """How many epochs it ran, if it says so."""
        value = self.record["metrics"].get("epochs_run", {}).get("value")
        return None if value is None else float(value)

    @property
    def rate(self) -> float | None:
        """Its benchmark's main metric, if that is so much per second."""
        metric = self.record["metrics"].get(self.benchmark.main_metric or "")
        known = metric and str(metric["unit"]).endswith("/s") and metric["value"] > 0
        return float(metric["value"]) if known else None


class _CopyError(UserError):
    """The run is there already."""


def write_runs(
    items: Iterable[Item], store: "RecordStore"
) -> Iterator[Written | Refusal | NotRead]:
    """Write a record for every run as it comes; yields what became of it, and all else as it is.

    A run that was imported before keeps its record. A second copy of a run is named and left out.
    """
    for item in items:
        try:
            yield store.write(item) if isinstance(item, ImportedRun) else item
        except UserError as error:
            if isinstance(item, ImportedRun):
                yield item.refused(str(error), copy=isinstance(error, _CopyError))


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
            if record["source"] != IMPORTED or "." in path.parent.name:
                continue
            try:
                run = self._written(record)
            except UserError:
                self.unreadable.append(path.parent.name)
            else:
                self._there[run.digest] = run

    def _written(self, record: Mapping[str, Any]) -> Written:
        """Raises UserError for a record whose benchmark is not there or has other parameters."""
        benchmark = self._benchmark(str(record["benchmark"]))
        point = {**benchmark.defaults, **record["point"]}
        if benchmark.run_id(point, int(record["repeat"])) != record["run_id"]:
            raise UserError("of another version of the benchmark")
        return Written(benchmark, record, point)

    def _benchmark(self, name: str) -> Benchmark:
        if name not in self._benchmarks:
            # Of what an import made, the benchmark lies in the results folder.
            self._benchmarks[name] = load_benchmark(name, beside=self.folder.parent.parent)
        return self._benchmarks[name]

    @property
    def runs(self) -> list[Written]:
        """All imported runs of the site, by where they were read."""
        return sorted(self._there.values(), key=lambda run: run.order)

    def write(self, run: ImportedRun) -> Written:
        """Write the record of a run unless it is there; raises UserError if it is refused."""
        known = self._benchmarks.get(run.benchmark)
        new = run.made and (known is None or not _covers(known, run))
        if run.made and new:
            results = self.folder.parent.parent
            self._benchmarks[run.benchmark] = make_benchmark(results, run.benchmark, run.made)
        benchmark = self._benchmark(run.benchmark)
        point = _complete(benchmark, run, self.startable)
        now = Written(benchmark, _record(benchmark, run, point, 0, self.folder.name), point)
        if (before := self._there.get(now.digest)) is not None:
            if now.digest in self._seen:
                raise _CopyError(f"the same run as in {before.place}")
            self._seen.add(now.digest)
            if before.benchmark is benchmark and before.said == now.said:
                return before
            # Read otherwise than before: its ranks were named, or what is known of it has changed.
            self._move(before)
        repeat = 0
        while (self.folder / benchmark.run_id(point, repeat) / RECORD).exists():
            repeat += 1
        record = _record(benchmark, run, point, repeat, self.folder.name)
        return self._add(Written(benchmark, record, point), run)

    def _add(self, written: Written, run: ImportedRun) -> Written:
        folder = self.folder / written.run_id
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            samples = Path(scratch) / SAMPLES
            np.savez(samples, **run.samples)
            write_record(folder, dict(written.record), samples)
        (folder / FAILURE).unlink(missing_ok=True)  # of an earlier record that was set aside
        written = Written(written.benchmark, read_record(folder / RECORD), written.point)
        self._there[written.digest] = written
        self._seen.add(written.digest)
        # A run that was cut when this file was imported before: its log has grown.
        for other in [*self._there.values()]:
            cut = other.unfinished and other.digest not in self._seen
            if cut and other.place == written.place:
                self._move(other)
        return written

    def _move(self, run: Written) -> None:
        """Take away the record of a run that is now one of another point; nothing is lost."""
        del self._there[run.digest]
        for name in (RECORD, SAMPLES):
            path = self.folder / run.run_id / name
            if path.exists():
                path.replace(path.with_name(f"{name}{MOVED}"))


def _covers(benchmark: Benchmark, run: ImportedRun) -> bool:
    """Whether a benchmark has all that a run needs of it."""
    assert run.made is not None
    return (
        run.made.metrics.keys() <= benchmark.metrics.keys()
        and run.made.parameters.keys() <= benchmark.parameters.keys()
    )


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


def _record(
    benchmark: Benchmark, run: ImportedRun, point: Mapping[str, Any], repeat: int, site: str
) -> dict[str, Any]:
    """The record of an imported run; what its source does not state is empty or None."""
    modified = datetime.fromtimestamp(run.file.stat().st_mtime, UTC)
    work = run.samples_per_epoch
    work = benchmark.total_work(point) if work is None else work
    if_any = {
        "parts": dict(run.parts), "functions": dict(run.functions), "unfinished": run.unfinished,
        "failed": run.failed, "phase_spans": [list(span) for span in run.phase_spans],
    }  # fmt: skip
    return {
        "run_id": benchmark.run_id(point, repeat),
        "benchmark": benchmark.name,
        "version": benchmark.version,
        "point": dict(point),
        "repeat": repeat,
        "site": site,
        "source": IMPORTED,
        "started": (run.started or modified).isoformat(timespec="seconds"),
        "ended": (run.ended or modified).isoformat(timespec="seconds"),
        "wall_s": None,
        "attempt": 1,
        "phases": dict(run.phases),
        "metrics": dict(run.metrics),
        "work": {"samples_per_epoch": work or None, "bytes_per_epoch": None},
        "resources": {"hosts": [], "slurm_nodes": []},
        "environment": {"ranks": [], "versions": {}, "variables": {}, "node": {}},
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
        **{key: value for key, value in if_any.items() if value},
    }
