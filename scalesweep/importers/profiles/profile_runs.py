"""From profiles to runs: of a benchmark that the user names, or of one made for each tool."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from scalesweep.analysis.profile import Message, Profile, function_entries, parts_of
from scalesweep.config.benchmark import Benchmark
from scalesweep.core.files import digest_of, file_digest
from scalesweep.importers.imported_run import ImportedRun, Refusal, metric
from scalesweep.importers.made_benchmark import Made, declared, entries_of
from scalesweep.importers.profiles import horovod_timeline, kineto
from scalesweep.importers.write_records import PRINTED

# Of the whole recording.
NOTES = (kineto.NOTE, horovod_timeline.NOTE)


@dataclass
class MadeRuns:
    """Runs with what their benchmarks are, refusals, and the kind of scaling of each benchmark."""

    runs: list[ImportedRun] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
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
            made.refusals.append(Refusal(profile.file, words))
            continue
        inside = not source.is_file() and profile.file.parent != source
        name = str(profile.file.parent.relative_to(source)) if inside else ""
        folder = re.sub(r"[^\w./ +-]", "_", name)[:200] or None
        made.runs.append(_run(profile, profile.ranks, folder, benchmark))
        made.scaling[made.runs[-1].benchmark] = str(profile.notes.get("scaling", "none"))
        for message in profile.messages:
            made.runs.append(_message_run(profile, profile.ranks, folder, message))
            made.scaling[made.runs[-1].benchmark] = "none"
    return made


def _run(
    profile: Profile, ranks: int, folder: str | None, benchmark: Benchmark | None
) -> ImportedRun:
    """A profile as a run: of ``benchmark``, or of one that is made of the profile.

    Parts of the step are seconds of each rank (``[rank]``), or one mean if the profile has no
    ranks.
    """
    patterns = benchmark.parts if benchmark else None
    parts = parts_of(profile, patterns)
    samples = {f"part_{part}": seconds for part, seconds in parts.items()}
    if times := profile.rank_times:
        samples |= {
            "profile_elapsed": times.elapsed, "profile_useful": times.useful,
            "profile_mpi": times.mpi,
        }  # fmt: skip
    rows = function_entries(profile, patterns)
    point = {"region": profile.region or None, "folder": folder}
    return _imported(
        profile, f"profile_{profile.tool}", "Runs as profiled by {}.",
        {"ranks": ranks, **({} if benchmark else point)}, profile.metrics, [],
        of=benchmark,
        samples=samples,
        parts={part: float(seconds.mean()) for part, seconds in parts.items()},
        functions={"ranks": profile.profiled_ranks or ranks, "rows": rows} if rows else {},
    )  # fmt: skip


def _message_run(profile: Profile, ranks: int, folder: str | None, message: Message) -> ImportedRun:
    """A run of its own for a message size, so that bandwidth can be shown over the size."""
    point = {
        "ranks": ranks, "operation": message.operation.lower(),
        "message_bytes": float(message.size), "folder": folder, "group": message.group or None,
    }  # fmt: skip
    spread = {"count": message.count, "std": message.std_s}
    bus = message.bus_bandwidth(ranks)
    metrics: dict[str, Mapping[str, Any]] = {
        **({"bus_bandwidth": metric(bus, "bytes/s", "higher")} if bus is not None else {}),
        "algorithm_bandwidth": metric(message.size / message.mean_s, "bytes/s", "higher"),
        "call_time": {
            **metric(message.mean_s, "s", "lower"),
            **{name: it for name, it in spread.items() if it is not None},
        },
        "calls": metric(message.count, "calls", "lower"),
    }
    key = [message.operation, message.size, *([message.group] if message.group else [])]
    name, summary = f"messages_{profile.tool}", "Collective calls by size, from {}."
    return _imported(profile, name, summary, point, metrics, key)


# Of a trace with a message of each size the digest is asked for as often.
_digest_of = lru_cache(1)(file_digest)


def _imported(
    profile: Profile,
    name: str,
    summary: str,
    point: Mapping[str, Any],
    metrics: Mapping[str, Mapping[str, Any]],
    key: Sequence[Any],
    of: Benchmark | None = None,
    **more: Any,
) -> ImportedRun:
    """The run of a profile, of benchmark ``of`` or of one that is made; with a ``key``, that of its
    messages of one size."""
    digest = [profile.tool, _digest_of(profile.file), profile.region, profile.ranks, list(key)]
    every = entries_of(declared("profiles")["parameters"])
    parameters = {name: entry for name, entry in every.items() if name in point}
    made = Made(summary.format(profile.tool.replace("_", " ")), parameters, _definitions(metrics))
    return ImportedRun(
        benchmark=of.name if of else name,
        made=None if of else made,
        point=point,
        file=profile.file,
        source_digest=digest_of(digest),
        notes={
            "importer": f"profile of {profile.tool}",
            **({PRINTED: "times of a call are rounded"} if key else {}),
            # The account of a whole timeline is not that of its messages of one size.
            **{name: note for name, note in profile.notes.items() if not (key and name in NOTES)},
        },
        metrics=metrics,
        **more,
    )


def _definitions(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Definitions of metrics, the main one first."""
    known = declared("profiles")["metrics"]
    order = ["bus_bandwidth", "algorithm_bandwidth", *known]
    names = sorted(metrics, key=lambda it: order.index(it) if it in order else len(order))
    phases = {
        "sum": "time in {}, all tensors added up",
        "union": "time during which at least one tensor was in {}",
        "share": "share of a step with at least one tensor in {}",
    }

    def usual(name: str) -> str:
        phase, _, kind = name.rpartition("_")
        return phases.get(kind, "as the tool states it").format(phase.replace("_", " "))

    return {name: known.get(name) or usual(name) for name in names}
