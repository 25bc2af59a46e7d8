"""What DeepSpeed's FLOPS profiler and its communication logger print, each a benchmark of its own.

A profile (deepspeed/profiling/flops_profiler) is of one step on one rank; its units change with the
size (us, ms, s). The logger (deepspeed/utils/comms_logging.py) prints Gbit/s: they become bytes/s.
Its bus bandwidth is that of nccl-tests; its algorithm's bandwidth of an allreduce counts the bytes
twice, and is not read. Its times begin when rank 0 calls: they hold the wait for slower ranks, and
of what is only queued they are too short.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.compute.log_lines import Line
from scalesweep.core.files import digest_of
from scalesweep.importers.imported_run import (
    ImportedRun,
    ImportRefusedError,
    Refusal,
    file_dates,
    shown,
)
from scalesweep.importers.made_benchmark import Made, parameter_entry
from scalesweep.importers.write_campaign import Rules

PROFILE, COMMS = "deepspeed_flops_profiler", "deepspeed_comms"
RULES = {name: Rules("scaling", (), prefix=f"{name}_") for name in (PROFILE, COMMS)}
SIGN = re.compile(r"world size: {20}|\| comm op: |Comm\. Op {10}")

_ENTRY = re.compile(
    r"(?P<name>[a-z][\w+/ ]{2,40})(?: = [^:]{1,80})?: {2,90}"
    r"(?P<text>-?[\d.]+\S{0,8}(?: \w{1,8})?)\s*$"
)
_SCALES = {"": 1.0, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# Name in the profile -> metric, unit, what its printed unit ends with, scope and direction.
_PROFILED = {
    "fwd flops per GPU": ("forward_flop", "FLOP", "", "rank", "lower"),
    "fwd latency": ("time_forward", "s", "s", "rank", "lower"),
    "bwd latency": ("time_backward", "s", "s", "rank", "lower"),
    "step latency": ("time_update", "s", "s", "rank", "lower"),
    "iter latency": ("step_time", "s", "s", "total", "lower"),
    "fwd+bwd FLOPS per GPU": (
        "flops_per_device_deepspeed", "FLOP/s", "FLOPS", "rank", "higher",
    ),
    "samples/second": ("samples_per_second", "samples/s", "", "total", "higher"),
}  # fmt: skip
_MADE_PROFILE = Made(
    "One step by DeepSpeed's FLOPS profiler.",
    {"micro_batch_size": parameter_entry("integer", "Samples of a GPU.", "samples", False)},
    {
        "samples_per_second": "samples of all GPUs over the time of the profiled step",
        "step_time": "time of the profiled step",
        "time_forward": "time of the forward pass of rank 0",
        "time_backward": "time of the backward pass of rank 0",
        "time_update": "time of the optimiser's step of rank 0",
        "forward_flop": "FLOP of a forward pass on a GPU, by DeepSpeed's count",
        "flops_per_device_deepspeed": "FLOP/s of a GPU in forward and backward pass, counted so",
    },
)
_VERBOSE = re.compile(
    r"\| comm op: (?P<op>\w{1,40})[^|]{0,80}(?:\| \[[^|]{0,80}\] )?\| time \(ms\): "
    r"(?P<ms>[\d.]{1,15}) \| msg size: (?P<size>[\d.]{1,10} ?[KMGT]?B) +\| algbw "
    r"\(Gbps\): [\d.]+ +\| busbw \(Gbps\): (?P<bus>[\d.]{1,15})\s*$"
)
_HEAD = re.compile(r"Comm\. Op {10,}Message Size")
_OPERATION = re.compile(r"(?P<op>[a-z_]{2,40})(?: \| \[Caller Func: [^\]]{1,80}\])?\s*$")
_SUMMARY = re.compile(
    r" {8,}(?P<size>[\d.]{1,10} ?[KMGT]?B) +(?P<count>\d{1,9}) +(?P<total>[\d.]{1,15}) +[\d.]{1,15}"
    r" +[\d.]{1,15} +(?P<bus>[\d.]{1,15})\s*$"
)
_MADE_COMMS = Made(
    "Collectives of a training by DeepSpeed's communication logger, a run for each operation.",
    {"operation": parameter_entry("string", "The collective, as DeepSpeed names it.", None, True)},
    {
        "bus_bandwidth": "of the message size that moved the most bytes, mean over its calls",
        "total_time": {
            "definition": "time of all calls on rank 0, waits included",
            "kind": "latency",
        },
        "calls": "calls of the operation",
    },
)


@dataclass
class _Profile:
    """A profile as far as it is read: texts by name."""

    line: int
    texts: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass
class _Collective:
    """Calls of an operation by size in bytes: number, seconds, seconds x bytes/s."""

    line: int
    last_line: int = 0
    calls: dict[float, list[float]] = field(default_factory=dict)

    def add(self, size: float, count: int, seconds: float, bus: float, line: int) -> None:
        """Add calls that took so many seconds together, with a mean bus bandwidth in bytes/s."""
        entry = self.calls.setdefault(size, [0.0, 0.0, 0.0])
        for place, value in enumerate((count, seconds, bus * seconds)):
            entry[place] += value
        self.last_line = line


def read_reports(
    lines: Callable[[], Iterable[Line]], file: Path, ranks: int | None = None
) -> Iterator[ImportedRun | Refusal]:
    """The profiles and collectives of a log, and refusals; ``lines()`` are those of ``file``."""
    modified = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    for profile in _profiles(lines()):
        try:
            yield _profiled(profile, file, modified)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, PROFILE, kind=str(error))
    for calls in itertools.chain(_tables(lines()), _printed_calls(lines())):
        try:
            yield from _collectives(calls, file, modified, ranks)
        except ImportRefusedError as error:
            yield Refusal(file, str(error), error.line, COMMS, kind=str(error))


def _profiles(lines: Iterable[Line]) -> Iterator[_Profile]:
    """Profiles, cut ones too."""
    profile: _Profile | None = None
    for line in lines:
        text = line.text[:400].lstrip("> ")
        if text.startswith("world size: "):
            if profile:
                yield profile
            profile = _Profile(line.number)
        if profile and (entry := _ENTRY.match(text)):
            profile.texts.setdefault(entry["name"].strip(), (entry["text"], line.number))
            if entry["name"] == "samples/second":
                yield profile
                profile = None
    if profile:
        yield profile


def _tables(lines: Iterable[Line]) -> Iterator[dict[str, _Collective]]:
    """Summaries of the logger: calls by operation."""
    table: dict[str, _Collective] | None = None
    operation = ""
    for line in lines:
        text = line.text[:400]
        if table is not None and (row := _SUMMARY.match(text)):
            calls = table.setdefault(operation, _Collective(line.number))
            _add(calls, row, int(row["count"]), float(row["total"]), line.number)
        elif table is not None and (named := _OPERATION.match(text)):
            operation = named["op"]
        elif text.strip():
            if table:
                yield table
            # The table behind it, of stragglers, has other columns.
            table = {} if _HEAD.search(text) and "straggler" not in text else None
    if table:
        yield table


def _printed_calls(lines: Iterable[Line]) -> Iterator[dict[str, _Collective]]:
    """All calls that were printed one by one, by operation."""
    calls: dict[str, _Collective] = {}
    for line in lines:
        if "| comm op: " in line.text and (row := _VERBOSE.search(line.text[:400])):
            entry = calls.setdefault(row["op"], _Collective(line.number))
            _add(entry, row, 1, float(row["ms"]), line.number)
    if calls:
        yield calls


def _add(calls: _Collective, row: re.Match[str], count: int, ms: float, line: int) -> None:
    size = row["size"].removesuffix("B").strip()
    scale = 1024.0 ** "_KMGT".index(size[-1]) if size[-1] in "KMGT" else 1.0
    calls.add(
        float(size.rstrip(" KMGT")) * scale, count, ms * 1e-3, float(row["bus"]) * 1.25e8, line
    )


def _profiled(profile: _Profile, file: Path, modified: datetime) -> ImportedRun:
    """The run of a profile. Raises ImportRefusedError where it is cut, or a value cannot be."""
    texts = profile.texts
    ranks, batch = (texts.get(name, ("", 0))[0] for name in ("world size", "batch size per GPU"))
    if not ranks.isdigit() or not int(ranks) or "iter latency" not in texts:
        raise ImportRefusedError("a profile without world size or iter latency", profile.line)
    metrics: dict[str, Any] = {}
    for name, (metric, unit, end, scope, better) in _PROFILED.items():
        if name not in texts:
            continue
        text, line = texts[name]
        value, _, printed = text.partition(" ")
        scale = _SCALES.get(printed.removesuffix(end)) if printed.endswith(end) else None
        if not re.fullmatch(r"\d+(?:\.\d*)?", value) or scale is None or not float(value):
            raise ImportRefusedError(f"{name} of {shown(text)}", line)
        metrics[metric] = {
            "value": float(value) * scale, "unit": unit, "better": better, "scope": scope,
        }  # fmt: skip
    known = {"micro_batch_size": int(batch)} if batch.isdigit() else {}
    return ImportedRun(
        benchmark=PROFILE,
        made=_MADE_PROFILE,
        point={"ranks": int(ranks), **known},
        file=file,
        line=profile.line,
        source_digest=digest_of([PROFILE, {name: text for name, (text, _) in texts.items()}]),
        started=modified,
        ended=modified,
        samples={},
        samples_per_epoch=0,
        metrics=metrics,
        notes={
            "importer": "DeepSpeed FLOPS profiler",
            "lines": [profile.line, max(line for _, line in texts.values())],
            "dates": file_dates("the log"),
        },
    )


def _collectives(
    calls: dict[str, _Collective], file: Path, modified: datetime, ranks: int | None
) -> Iterator[ImportedRun]:
    """A run for each operation that moves bytes. Raises ImportRefusedError without ``ranks``."""
    first = min(it.line for it in calls.values())
    if ranks is None:
        raise ImportRefusedError("DeepSpeed does not state the number of ranks: --ranks N", first)
    for operation, it in calls.items():
        sizes = np.array(sorted(it.calls), np.float64)
        counts, seconds, weighted = np.array([it.calls[size] for size in sizes]).T
        moved = sizes * counts
        values: dict[str, tuple[float, str, str]] = {
            "total_time": (float(seconds.sum()), "s", "lower"),
            "calls": (float(counts.sum()), "1", "lower"),
        }
        most = int(moved.argmax())
        if moved[most] and seconds[most] and weighted[most]:
            values["bus_bandwidth"] = float(weighted[most] / seconds[most]), "bytes/s", "higher"
        yield ImportedRun(
            benchmark=COMMS,
            made=_MADE_COMMS,
            point={"ranks": ranks, "operation": operation},
            file=file,
            line=it.line,
            source_digest=digest_of([COMMS, operation, repr(sorted(it.calls.items()))]),
            started=modified,
            ended=modified,
            samples={"message_bytes": sizes, "message_calls": counts, "message_seconds": seconds},
            samples_per_epoch=0,
            metrics={
                name: {"value": value, "unit": unit, "better": better, "scope": "total"}
                for name, (value, unit, better) in values.items()
            },
            notes={
                "importer": "DeepSpeed communication logger",
                "lines": [it.line, it.last_line],
                "dates": file_dates("the log"),
                "message_bytes": sizes[most],
                "times": "on rank 0, from its call on: waits for other ranks are in them",
            },
        )
