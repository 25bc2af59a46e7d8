"""From profiles to runs: of a benchmark that the user names, or of one made for each tool."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scalesweep.analysis import horovod_timeline, kineto_calls
from scalesweep.analysis.pop import VARIANTS, PopFactors
from scalesweep.analysis.profile import (
    Message,
    Profile,
    function_entries,
    parts_of,
)
from scalesweep.analysis.types import Floats
from scalesweep.config.benchmark import Benchmark
from scalesweep.core.files import digest_of, file_digest
from scalesweep.importers.imported_run import ImportedRun, Refusal, file_dates
from scalesweep.importers.made_benchmark import parameter_entry
from scalesweep.importers.profiles.source import metric
from scalesweep.importers.write_records import PRINTED

# Of the whole recording.
NOTES = (kineto_calls.NOTE, horovod_timeline.NOTE)
# What a metric of a profile means, for the report.
DEFINITIONS = {
    "parallel_efficiency": "load balance x communication efficiency = mean useful time / run time",
    "load_balance": "mean / largest useful time of the ranks",
    "communication_efficiency": "largest useful time / run time",
    "serialisation_efficiency": VARIANTS["modelfactors"].partition(",")[0]
    + " (variant modelfactors; ' on an ideal network)",
    "transfer_efficiency": "communication / serialisation efficiency (variant modelfactors)",
    "computation_scaling": "useful time of all ranks at the base / at this scale",
    "global_efficiency": "parallel efficiency x computation scaling",
    "speedup": "run time at the base / run time (weak scaling: x ranks / base ranks)",
    "runtime": "longest elapsed time of a rank",
    "ideal_runtime": "run time of a replay on an ideal network",
    "useful_time": "elapsed less MPI time, mean over the ranks",
    "mpi_time": "time in MPI, mean over the ranks",
    "profiled_time": "time of all threads that the tool saw, mean over the ranks",
    "idle_share": "share of a step in which no tensor is in any phase of Horovod",
    "timeline_length": "from the first to the last event of the timeline",
    "kernel_time": "sum over all kernels, mean over the ranks",
    "copy_time": "sum over all copies and fills of memory, mean over the ranks",
    "api_time": "sum over all calls, mean over the ranks",
    "gpu_busy": "time with at least one kernel or copy / length of the recording",
    "gpu_busy_each": "the same of each GPU of a process that uses several, mean over these GPUs",
    "call_time": "mean time of a collective call of this size",
    "algorithm_bandwidth": "bytes / mean time of a call",
    "bus_bandwidth": "algorithm bandwidth x bus factor (nccl-tests, doc/PERFORMANCE.md)",
    "calls": "collective calls of this size",
    "computation": "kernels that are no collectives (CPU: operations), mean over the ranks",
    "exposed_communication": "collectives while no computation runs, mean over the ranks",
    "overlapped_communication": "collectives behind computation, mean over the ranks",
    "copies": "copies from and to GPUs while nothing else runs, mean over the ranks",
    "idle": "neither computation nor communication nor copies, mean over the ranks",
    "overlap_share": "overlapped over all communication",
    "step_time": "mean of the steps that the profiler recorded",
    "steps": "steps that the profiler recorded, mean over the ranks",
}


@dataclass
class MadeRuns:
    """Runs, refusals, and what the benchmarks to be made are: parameters and metrics by name."""

    runs: list[ImportedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    parameters: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    metrics: dict[str, dict[str, str]] = field(default_factory=dict)
    scaling: dict[str, str] = field(default_factory=dict)


def runs_of(
    profiles: Sequence[Profile], source: Path, benchmark: Benchmark | None = None
) -> MadeRuns:
    """A run for each profile, and one for each size of its messages.

    ``benchmark``: whose runs they are, and whose ``parts`` group their functions; without it each
    tool gets a benchmark ``profile_<tool>``. Profiles of one folder that agree in tool, ranks and
    region are repeats; those of different folders below ``source`` never are.
    """
    made = MadeRuns()
    for profile in profiles:
        if profile.ranks is None:
            words = "does not state the number of ranks: add --ranks N"
            made.refusals.append(Refusal(profile.file, words, profile.line))
            continue
        folder = _folder(profile.file, source)
        made.runs.append(_run(made, profile, profile.ranks, folder, benchmark))
        for message in profile.messages:
            made.runs.append(_message_run(made, profile, profile.ranks, folder, message))
    return made


def _folder(file: Path, source: Path) -> str | None:
    """The folder of a file below the source; None if there is none in between."""
    if source.is_file() or file.parent == source:
        return None
    name = str(file.parent.relative_to(source))
    return re.sub(r"[^\w./ +-]", "_", name)[:200]


def _run(
    made: MadeRuns, profile: Profile, ranks: int, folder: str | None, benchmark: Benchmark | None
) -> ImportedRun:
    """A profile as a run: of ``benchmark``, or of one that is made of the profile (noted in
    ``made``).

    Parts of the step are seconds of each rank (``[rank]``), or one mean where the profile has no
    ranks.
    """
    metrics = {**_factor_metrics(profile.factors), **profile.metrics}
    point: dict[str, Any] = {"ranks": ranks}
    if benchmark is None:
        name = f"profile_{profile.tool}"
        point |= {"region": profile.region or None, "folder": folder}
        made.parameters[name] = {
            "region": parameter_entry(
                "string", "Part of the program that was profiled; null: all.", None, True
            ),
            "folder": parameter_entry("string", "Folder of the profile.", None, True),
        }
        made.metrics.setdefault(name, {}).update(_definitions(metrics))
        made.scaling[name] = str(profile.notes.get("scaling", "none"))
    else:
        name = benchmark.name
    patterns = benchmark.parts if benchmark else None
    parts = parts_of(profile, patterns)
    samples: dict[str, Floats] = {f"part_{part}": seconds for part, seconds in parts.items()}
    if times := profile.rank_times:
        samples |= {
            "profile_elapsed": times.elapsed,
            "profile_useful": times.useful,
            "profile_mpi": times.mpi,
        }
    return replace(
        _imported(profile, name, point, metrics, []),
        samples=samples,
        parts={part: float(seconds.mean()) for part, seconds in parts.items()},
        functions=_functions(profile, ranks, patterns),
    )


def _functions(
    profile: Profile, ranks: int, patterns: Mapping[str, Sequence[str]] | None
) -> dict[str, Any]:
    """``functions`` of a record; empty where the profile has none."""
    rows = function_entries(profile, patterns)
    return {"ranks": profile.profiled_ranks or ranks, "rows": rows} if rows else {}


def _factor_metrics(factors: PopFactors | None) -> dict[str, Mapping[str, Any]]:
    if factors is None:
        return {}
    values = {
        "parallel_efficiency": factors.parallel,
        "load_balance": factors.load_balance,
        "communication_efficiency": factors.communication,
        "serialisation_efficiency": factors.serialisation,
        "transfer_efficiency": factors.transfer,
    }
    return {
        name: metric(value, "1", "higher") for name, value in values.items() if value is not None
    }


def _message_run(
    made: MadeRuns, profile: Profile, ranks: int, folder: str | None, message: Message
) -> ImportedRun:
    """A run of its own for a message size, so that bandwidth can be shown over the size."""
    name = f"messages_{profile.tool}"
    point = {
        "ranks": ranks,
        "operation": message.operation.lower(),
        "message_bytes": float(message.size),
        "folder": folder,
        **({"group": message.group} if message.group else {}),
    }
    made.parameters[name] = {
        "group": parameter_entry(
            "string", "The ranks that take part, as the tool names them.", None, True
        ),
        "operation": parameter_entry("string", "Collective operation.", None, True),
        "message_bytes": parameter_entry(
            "number", "Bytes of a call, of all fused tensors together.", "bytes", True
        ),
        "folder": parameter_entry("string", "Folder of the profile.", None, True),
    }
    spread: dict[str, object] = {"count": message.count}
    if message.std_s is not None:
        spread["std"] = message.std_s
    bus = message.bus_bandwidth(ranks)
    metrics: dict[str, Mapping[str, Any]] = {
        **({"bus_bandwidth": metric(bus, "bytes/s", "higher")} if bus is not None else {}),
        "algorithm_bandwidth": metric(message.algorithm_bandwidth, "bytes/s", "higher"),
        "call_time": {**metric(message.mean_s, "s", "lower"), **spread},
        "calls": metric(message.count, "calls", "lower"),
    }
    made.metrics.setdefault(name, {}).update(_definitions(metrics))
    made.scaling[name] = "none"
    key = [message.operation, message.size, *([message.group] if message.group else [])]
    return _imported(profile, name, point, metrics, key)


def _imported(
    profile: Profile,
    benchmark: str,
    point: Mapping[str, Any],
    metrics: Mapping[str, Mapping[str, Any]],
    key: Sequence[Any],
) -> ImportedRun:
    """The imported run of a profile without its parts; with a ``key``, that of its messages of one
    size."""
    # A profile states no dates: the file's own age is all there is.
    modified = datetime.fromtimestamp(profile.file.stat().st_mtime, UTC)
    return ImportedRun(
        benchmark=benchmark,
        point=point,
        file=profile.file,
        line=profile.line,
        source_digest=digest_of(
            [profile.tool, file_digest(profile.file), profile.region, profile.ranks, list(key)]
        ),
        started=modified,
        ended=modified,
        notes={
            "importer": f"profile of {profile.tool}",
            "dates": file_dates("the profile"),
            **({PRINTED: "times of a call are rounded"} if key else {}),
            # The account of a whole timeline is not that of its messages of one size.
            **{name: note for name, note in profile.notes.items() if not (key and name in NOTES)},
        },
        samples={},
        samples_per_epoch=0,
        metrics=metrics,
    )


def _definitions(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Definitions of metrics, the main one first."""
    definitions = {}
    for name in sorted(metrics, key=_rank):
        phase, _, kind = name.rpartition("_")
        words = {
            "sum": f"time in {phase}, all tensors added up",
            "union": f"time during which at least one tensor was in {phase}",
            "share": f"share of a step with at least one tensor in {phase.replace('_', ' ')}",
        }.get(kind, "as the tool states it")
        definitions[name] = DEFINITIONS.get(name, words)
    return definitions


def _rank(name: str) -> int:
    names = list(DEFINITIONS)
    if name in ("bus_bandwidth", "algorithm_bandwidth"):
        return -1
    return names.index(name) if name in names else len(names)
