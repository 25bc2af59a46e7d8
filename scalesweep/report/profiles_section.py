"""The report's section on runs next to the measured ones: profiles, and without exchange."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.aspects.profiles.functions import FunctionTime, profile_files
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.aspects.profiles.traces import (
    CollectiveTime,
    RankLateness,
    TraceOperation,
    TracePart,
)
from scalesweep.aspects.steps.breakdown import NoExchangeRow
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import percent, shorten, with_interval
from scalesweep.core.profilers import (
    CPROFILE,
    HOROVOD_TIMELINE,
    NOEXCHANGE,
    NSYS,
    TAU,
    TENSORFLOW,
    TORCH,
)
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import DeclaredRow, Estimate, columns_of

MAX_RUNS, MAX_FILES = 24, 8
MAX_TABLES = 8  # of one kind
MAX_ROWS = 30
_SHARES = ("share", "least", "most", "last_share", "communication_share")
# How each is opened.
OPENED_WITH = {
    CPROFILE: "Python's pstats, or a viewer such as snakeviz",
    TENSORFLOW: "TensorBoard's profile plugin (tensorboard --logdir of the folder profile), or as "
    "docs/guide/profiles.md says with Perfetto",
    TORCH: "Perfetto (ui.perfetto.dev) or chrome://tracing",
    HOROVOD_TIMELINE: "Perfetto (ui.perfetto.dev) or chrome://tracing",
    NSYS: "Nsight Systems (the .nsys-rep files)",
    TAU: "paraprof (the files profile.*); pprof.txt is text",
}


@dataclass(frozen=True)
class _Shown:
    """How the page shows a declared table: a table for each group of rows that agree in ``by``."""

    kind: type[DeclaredRow]
    heading: str
    note: str
    by: Sequence[str]
    columns: Sequence[str]


_SHOWN: Sequence[_Shown] = (
    _Shown(
        FunctionTime, "Functions of the profiles",
        "Means over the ranks. Times of calls of an API and of ranges hold those of others.",
        ("run_id", "kind"),
        ("function", "place", "part", "share", "own_s", "total_s", "calls", "mean_s", "min_s",
         "max_s"),
    ),
    _Shown(
        NoExchangeRow, "Exposed communication, from runs without exchange",
        "What a measured step takes more than one of the slowest rank alone, in runs in which "
        "every rank applies its own gradients. Means over pairs of runs, with 95 % intervals.",
        (), ("pairs", "step_ms", "without_ms", "communication_ms", "communication_share",
             "stamped_ms"),
    ),
    _Shown(
        TracePart, "Trace of the framework's profiler",
        "The share of a step in which something of a part runs that no part above it covers; mean "
        "over the ranks, least and most of one. On CPUs TensorFlow's profiler does not record "
        "Horovod's exchange: it is in the rest. One run under a profiler; no interval.",
        ("run_id",), ("part", "share", "least", "most", "ms", "steps", "traced_ranks"),
    ),
    _Shown(
        CollectiveTime, "Exchange in the trace",
        "Calls by process group and operation, per step where the trace shows steps. Exposed: no "
        "computation runs meanwhile. Bus bandwidth as nccl-tests defines it, from the last rank's "
        "begin on where the calls of all ranks are known.",
        ("run_id",),
        ("group", "members", "collective", "rank", "calls", "bytes", "bus_bandwidth", "exposed_ms",
         "overlapped_ms"),
    ),
    _Shown(
        RankLateness, "Who comes late to the exchange",
        "How long after the first rank of its group a rank begins a call that ends on all of them "
        "together; clocks are aligned on these ends. Latest: late throughout the recording.",
        ("run_id",),
        ("group", "members", "rank", "latest", "calls", "late_median_ms", "late_p95_ms",
         "last_share", "clock_ahead_ms"),
    ),
    _Shown(
        TraceOperation, "Operations by device",
        "From the trace: time of each type of operation per step, without that of operations that "
        "it calls, mean over the ranks. Threads and streams of a device add up.",
        ("run_id", "device"), ("operation", "share", "ms", "gradient_ms", "calls"),
    ),
    _Shown(
        TimelinePhase, "Horovod's timeline",
        "Of rank 0: the share of a step during which at least one tensor is in a phase. Phases of "
        "different tensors overlap, so the shares do not add up.",
        ("run_id",), ("phase", "share", "ms", "steps", "negotiations", "ticked"),
    ),
)  # fmt: skip


def profiles_section(
    results: ExperimentResults, runs: Path, link: Callable[[Path], str]
) -> dict[str, Any]:
    """Profiled runs with links to their files, and the tables of what they say; of runs without
    exchange only what is missing is listed."""
    every = results.entry["profiles"]
    entries = [run for run in every if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE]
    kinds = dict.fromkeys(run["kind"] for run in entries)
    return {
        "rows": [_run(results, run, runs, link) for run in entries[:MAX_RUNS]],
        "left_out": max(0, len(entries) - MAX_RUNS),
        "kinds": {kind: OPENED_WITH[kind] for kind in kinds if kind in OPENED_WITH},
        "tables": [table for shown in _SHOWN for table in _tables(results, shown)],
    }


def _run(
    results: ExperimentResults, run: Mapping[str, Any], runs: Path, link: Callable[[Path], str]
) -> dict[str, Any]:
    """A profiled run: its state, and its files."""
    files: list[Path] = []
    if run["status"] == Status.DONE:
        try:
            files = [path for path in profile_files(runs / run["run_id"]) if path.is_file()]
        except (UserError, OSError):
            files = []
    known = run["status"] in (Status.DONE, Status.NEW)
    return {
        "kind": run["kind"],
        "where": results.describe(run["point"]),
        "state": run["status"] if known else run["cause"],
        "detail": run["detail"],
        "files": [(path.name, link(path)) for path in files[:MAX_FILES]],
        "left_out": max(0, len(files) - MAX_FILES),
    }


def _tables(results: ExperimentResults, shown: _Shown) -> Iterator[dict[str, Any]]:
    """The first ``MAX_TABLES`` groups of a table, ``MAX_ROWS`` rows of each.

    Columns without anything to say are left out; a table of all points says at which each row is.
    """
    groups: dict[tuple[Any, ...], list[DeclaredRow]] = {}
    for row in results.of(shown.kind):
        groups.setdefault(tuple(getattr(row, name) for name in shown.by), []).append(row)
    units = {item.name: item.unit for item in columns_of(shown.kind)}
    for place, (group, rows) in enumerate(list(groups.items())[:MAX_TABLES]):
        cells = {
            _heading(name, units[name]): [_cell(row, name) for row in rows[:MAX_ROWS]]
            for name in shown.columns
        }
        cells = {name: own for name, own in cells.items() if {*own} - {"", "–"}}
        where = [results.describe(row.point) if results.axes else "all" for row in rows]
        if not shown.by:
            cells = {"Point": where[:MAX_ROWS], **cells}
        yield {
            "name": shown.kind.TABLE,
            "heading": "" if place else shown.heading,
            "note": shown.note,
            "caption": ", ".join([where[0], *group[1:]]) if shown.by else "",
            "columns": list(cells),
            "rows": list(zip(*cells.values(), strict=True)),
            "left_out": max(0, len(rows) - MAX_ROWS),
        }


def _heading(name: str, unit: str) -> str:
    words = re.sub(r"(^|_)m?s$", "", name).replace("_", " ").capitalize() or "Time"
    return f"{words}, {unit}" if unit not in ("", "1") else words


def _cell(row: DeclaredRow, name: str) -> str:
    """A value in words: shares in percent, estimates with their interval."""
    value = getattr(row, name)
    words: Callable[..., str] = percent if name in _SHARES else with_interval
    if isinstance(value, Estimate):
        return words(value.value, value.low, value.high)
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return words(value, None, None)
    return "–" if value is None else shorten(f"{value:,}" if isinstance(value, int) else value, 160)
