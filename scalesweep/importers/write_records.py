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
from scalesweep.core.files import natural_order
from scalesweep.core.record import FAILURE, RECORD, SAMPLES, read_record, read_samples, write_record
from scalesweep.core.record_check import BadRecordError
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import COPY, FILE_DATES, ImportedRun, Item, Refusal
from scalesweep.importers.made_benchmark import make_benchmark
from scalesweep.state.run_state import set_aside, take_away

SOURCE_DIGEST = "source_blake2b"
IMPORTED = "imported"
PRINTED = "printed"  # note of runs whose numbers were rounded for print: many are equal
# What a corrected map, other patterns or another reader may change of a run.
_SAID = ("metrics", "parts", "functions", "unfinished", "failed")


@dataclass(frozen=True)
class Written:
    """A run whose record is there. ``point`` has the defaults of what its source does not state;
    ``file``, ``line`` (0 if not known), ``variant`` and ``digest`` are as of an ``ImportedRun``;
    ``unfinished`` says why it has no result."""

    benchmark: Benchmark
    record: Mapping[str, Any]
    point: Mapping[str, Any]
    run_id: str
    repeat: int
    file: str
    line: int
    variant: Mapping[str, str]
    digest: str
    unfinished: str
    command: tuple[str, ...]  # as its log shows it

    @property
    def place(self) -> str:
        """Where it was read."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def order(self) -> tuple[Any, ...]:
        """A key that sorts runs by where they were read, whatever the order of their imports."""
        side = self.record["notes"].get("side", ())  # of values side by side in a line
        return natural_order(Path(self.file)), self.line, tuple(side), self.digest

    @property
    def said(self) -> Any:
        """What it is a run of, and what it says."""
        return [self.point, self.variant, *(self.record.get(key) or None for key in _SAID)]


def _written(benchmark: Benchmark, record: Mapping[str, Any], point: Mapping[str, Any]) -> Written:
    notes = record["notes"]
    return Written(
        benchmark, record, point, record["run_id"], record["repeat"], notes["imported_from"],
        notes.get("lines", [0])[0], notes.get("variant", {}), notes[SOURCE_DIGEST],
        record.get("unfinished", ""), tuple(record.get("command") or ()),
    )  # fmt: skip


def write_runs(items: Iterable[Item], store: "RecordStore") -> Iterator[Written | Refusal]:
    """Write a record for every run as it comes; yields what became of it, and all else as it is.

    A run that was imported before keeps its record. A second copy of a run is named and left out.
    """
    for item in items:
        try:
            yield store.write(item) if isinstance(item, ImportedRun) else item
        except UserError as error:
            if isinstance(item, ImportedRun):
                yield Refusal(item.file, str(error), item.line, item.benchmark)


@dataclass
class RecordStore:
    """The imported records of a site.

    With ``startable`` points that the benchmark could not start itself are refused, as a campaign
    of a site with a launcher refuses them.
    """

    folder: Path
    startable: bool = False
    _benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    # By the digest of what it was read from.
    _there: dict[str, Written] = field(default_factory=dict)
    # Digests of the runs of this import.
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the records that are there; what is damaged, or of another version of its benchmark,
        is set aside, to be imported again."""
        for path in sorted(self.folder.glob(f"*/{RECORD}")):
            try:
                record = read_record(path)
                if record["source"] != IMPORTED:
                    continue
                if record["samples"] is not None:
                    read_samples(path.parent, record)
                benchmark = self._benchmark(record["benchmark"])
                point = {**benchmark.defaults, **record["point"]}
                if benchmark.run_id(point, record["repeat"]) != record["run_id"]:
                    raise UserError("of another version of the benchmark")
            except (BadRecordError, UserError) as error:
                set_aside(path.parent, str(error).removeprefix(f"{path.parent.name}: "))
            else:
                run = _written(benchmark, record, point)
                self._there[run.digest] = run

    def _benchmark(self, name: str) -> Benchmark:
        if name not in self._benchmarks:
            # Of what an import made, the benchmark lies in the results folder.
            self._benchmarks[name] = load_benchmark(name, beside=self.folder.parent.parent)
        return self._benchmarks[name]

    @property
    def runs(self) -> list[Written]:
        """All imported runs of the site, by where they were read."""
        return sorted(self._there.values(), key=lambda run: run.order)

    def write(self, run: ImportedRun) -> Written | Refusal:
        """Write the record of a run unless it is there; raises UserError if it is refused."""
        known = self._benchmarks.get(run.benchmark)
        if run.made and (known is None or not run.made.is_part_of(known)):
            results = self.folder.parent.parent
            self._benchmarks[run.benchmark] = make_benchmark(results, run.benchmark, run.made)
        benchmark = self._benchmark(run.benchmark)
        point = self._point(benchmark, run)
        site = self.folder.name
        now = _written(benchmark, _record(benchmark, run, point, 0, site), point)
        if (before := self._there.get(now.digest)) is not None:
            if now.digest in self._seen:
                words = f"the same run as in {before.place}"
                return Refusal(run.file, words, run.line, run.benchmark, COPY)
            self._seen.add(now.digest)
            if before.benchmark is benchmark and before.said == now.said:
                return before
            # Read otherwise than before: its ranks were named, or what is known of it has changed.
            self._take_away(before)
        repeat = 0
        while (self.folder / benchmark.run_id(point, repeat) / RECORD).exists():
            repeat += 1
        record = _record(benchmark, run, point, repeat, site)
        folder = self.folder / record["run_id"]
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            samples = Path(scratch) / SAMPLES
            np.savez(samples, **run.samples)
            write_record(folder, record, samples)
        (folder / FAILURE).unlink(missing_ok=True)  # of an earlier record that was set aside
        written = _written(benchmark, read_record(folder / RECORD), point)
        self._there[written.digest] = written
        self._seen.add(written.digest)
        # A run that was cut when this file was imported before: its log has grown.
        for other in [*self._there.values()]:
            cut = other.unfinished and other.digest not in self._seen
            if cut and other.place == written.place:
                self._take_away(other)
        return written

    def _take_away(self, run: Written) -> None:
        """Take away the record of a run that is now one of another point; nothing is lost."""
        del self._there[run.digest]
        take_away(self.folder / run.run_id)

    def _point(self, benchmark: Benchmark, run: ImportedRun) -> dict[str, Any]:
        """The run's point with the defaults of what the source does not state."""
        where = str(run.file)
        try:
            point = {**benchmark.defaults, **benchmark.normalised(run.point, where)}
            if self.startable:
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
            "imported_from": visible(str(run.file)),
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
