"""The report's section on runs next to the measured ones: profiles, and without exchange."""

from collections.abc import Callable
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
from scalesweep.report.page_tables import declared_tables

MAX_RUNS, MAX_FILES = 24, 8
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
# Of the tables those that the page shows, with what is to be known beside their captions.
_TABLES = {
    FunctionTime: "Means over the ranks. Times of calls of an API and of ranges hold those of "
    "others.",
    NoExchangeRow: "Exposed communication, from runs without exchange: what a measured step takes "
    "more than one of the slowest rank alone. Means over pairs of runs, with 95 % intervals.",
    TracePart: "The share of a step in which something of a part runs that no part above it "
    "covers. On CPUs TensorFlow's profiler does not record Horovod's exchange: it is in the rest.",
    CollectiveTime: "Exposed: no computation runs meanwhile.",
    RankLateness: "Clocks are aligned on the ends of the calls. Latest: late throughout.",
    TraceOperation: "Means over the ranks, without the operations that each calls. Threads and "
    "streams of a device add up.",
    TimelinePhase: "Of rank 0. Phases of different tensors overlap, so shares do not add up.",
}


def profiles_section(
    results: ExperimentResults, runs: Path, link: Callable[[Path], str], limit: int = 1000
) -> dict[str, Any]:
    """Profiled runs with links to their files, and the tables of what they say; of runs without
    exchange only what is missing is listed."""
    every = results.entry["profiles"]
    entries = [run for run in every if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE]
    shown = []
    for run in entries[:MAX_RUNS]:
        files: list[Path] = []
        if run["status"] == Status.DONE:
            try:
                files = [path for path in profile_files(runs / run["run_id"]) if path.is_file()]
            except (UserError, OSError):
                files = []
        shown.append({
            "kind": run["kind"], "where": results.describe(run["point"]), "detail": run["detail"],
            "state": run["cause"] or run["status"],
            "files": [(path.name, link(path)) for path in files[:MAX_FILES]],
            "left_out": max(0, len(files) - MAX_FILES),
        })  # fmt: skip
    kinds = dict.fromkeys(run["kind"] for run in entries)
    return {
        "rows": shown,
        "left_out": max(0, len(entries) - MAX_RUNS),
        "kinds": {kind: OPENED_WITH[kind] for kind in kinds if kind in OPENED_WITH},
        "tables": declared_tables(results, _TABLES, limit),
    }
