"""The tables `collectives` and `lateness`: what ranks exchanged in traces of PyTorch's profiler,
and who came late to it.

Of runs under ``profile: torch`` from the files that their ranks left, of imported traces from what
the import noted in their records.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from scalesweep.analysis.kineto_account import account_of_rank
from scalesweep.analysis.kineto_calls import NOTE, CallTables, call_tables
from scalesweep.analysis.kineto_lateness import lateness_of, matched_calls
from scalesweep.analysis.kineto_stream import RankTrace, read_stream
from scalesweep.aspects.profiles.functions import IMPORTED, MAX_IMPORTED, profile_files
from scalesweep.compute.log_lines import open_packed
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import TORCH
from scalesweep.core.record import RECORD
from scalesweep.core.status import Status
from scalesweep.state.record_reader import read_record
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import TableInputs

MAX_RUNS = 12
MAX_RANKS = 16  # of a run of ours: the first ones
MAX_BYTES = 16 << 20  # of a file of ours
SUFFIX = ".json.gz"
_MS = 1e3


@dataclass(frozen=True, kw_only=True)
class CollectiveTime(DeclaredRow, table="collectives", leading=("run_id",)):
    """The calls of an operation that a rank made in a group, in a traced run.

    Times are per step where the trace shows steps, else of the whole trace; what overlaps counts
    once. Exposed is what no computation hides.
    """

    run_id: str = column("the run that was traced")
    group: str = column("the process group, as the trace names it; empty where it does not")
    members: str | None = column("its ranks; groups of other ranks may have the same name")
    collective: str = column("the operation; `unknown` where the trace does not say")
    rank: int = column("the rank")
    steps: int = column("steps of the trace; 0: it shows none", "1")
    calls: float = column("calls per step", "1")
    bytes: float | None = column("what they moved per step, as nccl-tests counts sizes", "bytes")
    bus_bandwidth: float | None = column("bus bandwidth, over the time of all calls", "bytes/s")
    waiting: bool | None = column(
        "whether that time includes waiting for ranks whose calls are not known"
    )
    exposed_ms: float = column("exposed time per step", "ms")
    overlapped_ms: float = column("time behind computation per step", "ms")


@dataclass(frozen=True, kw_only=True)
class RankLateness(DeclaredRow, table="lateness", leading=("run_id",)):
    """How late a rank begins the collectives of a group, after the first rank, in a traced run.

    Calls that end on all ranks together, matched by their sequence numbers or by their order, with
    clocks aligned on these ends.
    """

    run_id: str = column("the run that was traced")
    group: str = column("the process group, as the trace names it; empty where it does not")
    members: str = column("its ranks whose traces are there")
    rank: int = column("the rank")
    calls: int = column("calls that all of them made", "1")
    late_median_ms: float = column("how late it begins a call, median", "ms")
    late_p95_ms: float = column("95th percentile of that", "ms")
    late_mean_ms: float = column("mean of that", "ms")
    step_ms: float | None = column("a step of its trace", "ms")
    last_share: float = column("share of the calls that it was the last to begin", "1")
    latest: bool = column(
        "whether it is late throughout the recording, by more than chance allows "
        "(docs/methods/traces.md)"
    )
    clock_ahead_ms: float = column("what its clock was ahead of the first rank's", "ms")


def collective_rows(inputs: TableInputs) -> Iterator[CollectiveTime | RankLateness]:
    """A row per traced run, rank, group and operation, and per rank and group."""
    data, runs = inputs.data, inputs.runs
    if runs is None:
        return
    traced: list[Mapping[str, Any]] = [
        run
        for run in data.experiment["profiles"]
        if run["kind"] == TORCH and run["status"] == Status.DONE
    ]
    for run in traced[:MAX_RUNS]:
        try:
            tables = _profiled(runs / run["run_id"])
        except (UserError, OSError, KeyError, TypeError, ValueError):
            if run["run_id"] not in data.unread:
                data.unread.append(run["run_id"])
            continue
        yield from _rows(run, tables, data.axes)
    if runs.name == IMPORTED:
        done = [run for run in data.experiment["runs"] if run["status"] == Status.DONE]
        noted = ((run, _noted(runs / run["run_id"])) for run in done[:MAX_IMPORTED])
        known = ((run, tables) for run, tables in noted if tables is not None)
        for run, tables in islice(known, MAX_RUNS):
            yield from _rows(run, tables, data.axes)


def rank_files(folder: Path) -> dict[int, Path]:
    """The traces of a run of ours by rank, those that are too large left out."""
    files = {}
    for path in profile_files(folder):
        rank = path.name.removesuffix(SUFFIX).removeprefix("rank")
        if path.name.endswith(SUFFIX) and rank.isdecimal() and path.stat().st_size <= MAX_BYTES:
            files[int(rank)] = path
    return dict(sorted(files.items())[:MAX_RANKS])


def _profiled(folder: Path) -> CallTables:
    """The calls of a run of ours; raises UserError, OSError or ValueError where a file of it cannot
    be read."""
    traces: dict[int, RankTrace] = {}
    for rank, path in rank_files(folder).items():
        with open_packed(path) as stream:
            traces[rank] = read_stream(stream)
    accounts = {rank: account_of_rank(trace) for rank, trace in traces.items()}
    known = {rank: account for rank, account in accounts.items() if account is not None}
    matched = matched_calls(traces)
    return call_tables(traces, known, matched, lateness_of(matched))


def _noted(folder: Path) -> CallTables | None:
    """What an import noted in a record; None where there is nothing."""
    try:
        notes = read_record(folder / RECORD).get("notes") or {}
        return CallTables.from_json(notes[NOTE])
    except (UserError, OSError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _rows(
    run: Mapping[str, Any], tables: CallTables, axes: Sequence[str]
) -> Iterator[CollectiveTime | RankLateness]:
    point = {name: run["point"].get(name) for name in axes}
    for row in tables.calls:
        each = row.steps or 1
        yield CollectiveTime(
            point=point,
            run_id=run["run_id"],
            group=row.group,
            members=row.members,
            collective=row.collective,
            rank=row.rank,
            steps=row.steps,
            calls=row.calls / each,
            bytes=None if row.bytes is None else row.bytes / each,
            bus_bandwidth=row.bus_bandwidth,
            waiting=None if row.bus_bandwidth is None else row.waiting,
            exposed_ms=row.exposed_s * _MS / each,
            overlapped_ms=row.overlapped_s * _MS / each,
        )
    for late in tables.late:
        yield RankLateness(
            point=point,
            run_id=run["run_id"],
            group=late.group,
            members=late.members or "",
            rank=late.rank,
            calls=late.calls,
            late_median_ms=late.median_s * _MS,
            late_p95_ms=late.p95_s * _MS,
            late_mean_ms=late.mean_s * _MS,
            step_ms=None if late.step_s is None else late.step_s * _MS,
            last_share=late.last_share,
            latest=late.latest,
            clock_ahead_ms=late.ahead_s * _MS,
        )
