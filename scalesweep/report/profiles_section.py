"""The report's section on runs next to the measured ones: profiles, and without exchange."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalesweep.analysis.timeline_account import PHASES
from scalesweep.analysis.trace_account import PARTS
from scalesweep.aspects.breakdown.table import NoExchangeRow
from scalesweep.aspects.profiles.functions import FunctionTime, profile_files
from scalesweep.aspects.profiles.timeline import TimelinePhase
from scalesweep.aspects.profiles.trace import TraceOperation, TracePart
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import number, percent, shorten, with_interval
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
from scalesweep.report.trace_tables import trace_tables
from scalesweep.table.declared import Estimate

MAX_RUNS = 24
MAX_TABLES = 4
MAX_FUNCTIONS = 12
MAX_TOOL_FUNCTIONS = 30  # of a kind
MAX_NAME = 160
MAX_FILES = 8
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
MAX_POINTS = 50
KINDS = {
    "cpu": "Functions by own time",
    "kernel": "Kernels by time",
    "copy": "Copies and fills of memory by time",
    "api": "Calls of an API by time, with what they wait for",
    "range": "Ranges by time, with all that is in them",
}


def profiles_section(
    results: ExperimentResults, runs: Path, link: Callable[[Path], str]
) -> dict[str, Any]:
    """Profiled runs with links to their files, the top functions of the first few points, and what
    runs without exchange say; of these only what is missing is listed."""
    every = results.entry["profiles"]
    entries = [run for run in every if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE]
    rows = []
    for run in entries[:MAX_RUNS]:
        files: list[Path] = []
        if run["status"] == Status.DONE:
            try:
                files = [path for path in profile_files(runs / run["run_id"]) if path.is_file()]
            except (UserError, OSError):
                files = []
        rows.append(
            {
                "kind": run["kind"],
                "where": results.describe(run["point"]),
                "state": run["status"]
                if run["status"] in (Status.DONE, Status.NEW)
                else run["cause"],
                "detail": run["detail"],
                "files": [(path.name, link(path)) for path in files[:MAX_FILES]],
                "left_out": max(0, len(files) - MAX_FILES),
            }
        )
    return {
        "rows": rows,
        "left_out": len(entries) - len(rows),
        "kinds": {
            kind: OPENED_WITH[kind]
            for kind in dict.fromkeys(run["kind"] for run in entries)
            if kind in OPENED_WITH
        },
        "functions": _functions(results),
        "tools": _functions_of_tools(results),
        "timelines": _timelines(results),
        "exchange": _exchange(results),
        "traces": _traces(results),
        "operations": _operations(results),
        **trace_tables(results),
    }


def _exchange(results: ExperimentResults) -> list[dict[str, Any]]:
    """Of each point with runs without exchange: its step, the step without, and the difference."""

    def words(estimate: Estimate) -> str:
        return with_interval(estimate.value, estimate.low, estimate.high)

    return [
        {
            "where": results.describe(row.row),
            "pairs": row.pairs,
            "step": words(row.step_ms),
            "without": words(row.without_ms),
            "communication": words(row.communication_ms),
            "share": percent(
                row.communication_share.value,
                row.communication_share.low,
                row.communication_share.high,
            ),
            "stamped": number(row.stamped_ms),
        }
        for row in results.of(NoExchangeRow)[:MAX_POINTS]
    ]


def _timelines(results: ExperimentResults) -> list[dict[str, Any]]:
    """Of each run with a timeline of Horovod: its phases with share and time, and what it lacks."""
    by_run: dict[str, dict[str, Any]] = {}
    for row in results.of(TimelinePhase):
        words = f"{row.ticked:,} of {row.negotiations:,} negotiations say when each rank was ready"
        if not row.negotiations or row.ticked < row.negotiations:
            words += "; with HOROVOD_CACHE_CAPACITY=0 all do"
        run = by_run.setdefault(
            row.run_id,
            {"where": results.describe(row.point), "steps": row.steps, "ready": words, "rows": []},
        )
        run["rows"].append(
            {
                "phase": PHASES.get(row.phase, row.phase),
                "share": "not in this timeline" if row.share is None else percent(row.share),
                "ms": number(row.ms),
            }
        )
    return list(by_run.values())[:MAX_TABLES]


def _traces(results: ExperimentResults) -> list[dict[str, Any]]:
    """Of each traced run: the parts of its step with their shares over the ranks."""
    by_run: dict[str, dict[str, Any]] = {}
    for row in results.of(TracePart):
        run = by_run.setdefault(
            row.run_id,
            {"where": results.describe(row.point), "steps": row.steps, "ranks": row.traced_ranks,
             "rows": []},
        )  # fmt: skip
        known = row.share is not None
        run["rows"].append(
            {
                "part": PARTS.get(row.part, row.part),
                "share": percent(row.share) if known else "not in this trace",
                "of_ranks": f"{percent(row.least)} to {percent(row.most)}" if known else "–",
                "ms": number(row.ms),
            }
        )
    return list(by_run.values())[:MAX_TABLES]


def _operations(results: ExperimentResults) -> list[dict[str, Any]]:
    """Of each traced run, device by device, the operations that took longest."""
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    for row in results.of(TraceOperation):
        table = tables.setdefault(
            (row.run_id, row.device),
            {"where": results.describe(row.point), "device": row.device, "steps": row.steps,
             "ranks": row.traced_ranks, "ms": 0.0, "gradient_ms": 0.0, "rows": [], "left_out": 0},
        )  # fmt: skip
        table["ms"] += row.ms
        table["gradient_ms"] += row.gradient_ms
        if len(table["rows"]) >= MAX_FUNCTIONS:
            table["left_out"] += 1
            continue
        table["rows"].append(
            {
                "operation": shorten(row.operation, MAX_NAME),
                "share": percent(row.share),
                "ms": number(row.ms),
                "gradient": number(row.gradient_ms),
                "calls": _count(row.calls),
            }
        )
    runs = list(dict.fromkeys(run for run, _ in tables))[:MAX_TABLES]
    shown = [table for (run, _), table in tables.items() if run in runs][: 2 * MAX_TABLES]
    for table in shown:
        table |= {name: number(table[name]) for name in ("ms", "gradient_ms")}
    return shown


def _functions(results: ExperimentResults) -> list[dict[str, Any]]:
    """The top functions by point."""
    points: dict[str, dict[str, Any]] = {}
    for row in results.of(FunctionTime):
        if row.profiler != CPROFILE:
            continue
        point = points.setdefault(
            row.run_id,
            {"where": results.describe(row.point), "ranks": row.profiled_ranks, "rows": []},
        )
        if len(point["rows"]) < MAX_FUNCTIONS:
            point["rows"].append(
                {
                    "function": row.function,
                    "place": row.place,
                    "calls": _count(row.calls),
                    "own": number(row.own_s),
                    "total": number(row.total_s),
                    "share": percent(row.share),
                }
            )
    return list(points.values())[:MAX_TABLES]


def _functions_of_tools(results: ExperimentResults) -> list[dict[str, Any]]:
    """Of each profile of another tool the functions of one kind that took longest."""
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    for row in results.of(FunctionTime):
        if row.profiler == CPROFILE:
            continue
        table = tables.setdefault(
            (row.run_id, row.kind),
            {
                "where": results.describe(row.point) if results.axes else "",
                "kind": KINDS[row.kind],
                "ranks": row.profiled_ranks,
                "ends": False,
                "inclusive": False,
                "parts": False,
                "rows": [],
                "left_out": 0,
            },
        )
        if len(table["rows"]) >= MAX_TOOL_FUNCTIONS:
            table["left_out"] += 1
            continue
        table["ends"] |= row.max_s is not None
        table["parts"] |= row.part is not None
        table["inclusive"] |= row.total_s is not None and row.total_s != row.own_s
        table["rows"].append(
            {
                "function": shorten(row.function, MAX_NAME),
                "part": row.part or "",
                "calls": _count(row.calls),
                "own": number(row.own_s),
                "total": number(row.total_s),
                "mean": _microseconds(row.mean_s),
                "min": _microseconds(row.min_s),
                "max": _microseconds(row.max_s),
                "share": percent(row.share),
            }
        )
    runs = dict.fromkeys(run for run, _ in tables)
    shown = set(list(runs)[:MAX_TABLES])
    return [table for (run, _), table in tables.items() if run in shown]


def _count(calls: float | None) -> str:
    """A number of calls; a mean over ranks may have a fraction."""
    return "–" if calls is None else f"{calls:,.0f}" if calls >= 100 else f"{calls:,.4g}"


def _microseconds(seconds: float | None) -> str:
    return "–" if seconds is None else number(1e6 * seconds)
