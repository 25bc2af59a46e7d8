"""The report's section on runs next to the measured ones: profiles, and without exchange."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.aspects.profiles.table import TimelinePhase
from scalesweep.aspects.profiles.traces import (
    CollectiveTime,
    RankLateness,
    TraceOperation,
    TracePart,
)
from scalesweep.aspects.steps.breakdown import NoExchangeRow
from scalesweep.core.profilers import NOEXCHANGE
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.page_tables import declared_tables

MAX_RUNS = 24
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
    """Profiled runs with links to their folders, and the tables of what they say; of runs without
    exchange only what is missing is listed."""
    every = results.entry["profiles"]
    entries = [run for run in every if run["kind"] != NOEXCHANGE or run["status"] != Status.DONE]
    shown = [
        {
            "kind": run["kind"], "where": results.describe(run["point"]), "detail": run["detail"],
            "state": run["cause"] or run["status"], "folder": link(runs / run["run_id"]),
        }
        for run in entries[:MAX_RUNS]
    ]  # fmt: skip
    return {
        "rows": shown,
        "left_out": max(0, len(entries) - MAX_RUNS),
        "tables": declared_tables(results, _TABLES, limit),
    }
