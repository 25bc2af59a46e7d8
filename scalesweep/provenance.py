"""Where results come from: the environments of runs, grouped, and where they are unlike."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalesweep.hardware import Facts, hosts_of
from scalesweep.presentation import finite
from scalesweep.record import RECORD

# Set by launchers for each rank or job: they say where a run was, not how it was steered.
_PLACE = re.compile(
    r"SLURM_.*|HOROVOD_(RANK|SIZE|LOCAL_\w+|CROSS_\w+|GLOO_\w+|HOSTNAME"
    r"|ELASTIC|RENDEZVOUS\w*)|NCCL_SOCKET_IFNAME"
    # Of TensorFlow's own, for its clusters: addresses, and what its strategies set.
    r"|TF_CONFIG|TF_PS_DISABLE_ASYNC_EXECUTOR_GLOBALLY|TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE"
)
_GPU_KEPT = ("name", "memory.total", "driver_version")


@dataclass(frozen=True)
class EnergyFacts:
    """How the energy of a run was measured, or (``joules`` None) why it was not."""

    joules: float | None
    missing: str
    sources: tuple[str, ...]
    interval_s: float | None
    seconds: float | None
    hosts: int
    sampler_cpu_s: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunFacts:
    """What the report needs of a record; ``environment`` is a sorted tuple of (fact, value)."""

    environment: tuple[tuple[str, str], ...]
    hosts: tuple[str, ...]
    affinities: tuple[str, ...]
    source: str
    started: str
    ended: str
    wall_s: float | None
    attempt: int
    hardware: tuple[tuple[str, Facts], ...] = ()  # host -> facts
    energy: EnergyFacts | None = None  # None where the record says nothing of it


@dataclass
class Environment:
    """Runs with the same environment, the hosts they were on and their ranks' affinity masks."""

    facts: dict[str, str]
    runs: int = 0
    hosts: dict[str, None] = field(default_factory=dict)
    affinities: dict[str, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)


def run_facts(record: Mapping[str, Any]) -> RunFacts:
    """Facts of one record; whatever it lacks is left out."""
    environment = _mapping(record.get("environment"))
    resources = _mapping(record.get("resources"))
    ranks = [rank for rank in environment.get("ranks") or [] if isinstance(rank, dict)]
    nodes = resources.get("slurm_nodes") or []
    hosts = nodes if nodes and all(nodes) else resources.get("hosts") or []
    wall = record.get("wall_s")
    return RunFacts(
        tuple(_environment(record, environment)),
        tuple(dict.fromkeys(str(host) for host in hosts)),
        tuple(dict.fromkeys(str(r["affinity"]) for r in ranks if r.get("affinity") is not None)),
        str(record.get("source")),
        str(record.get("started") or ""),
        str(record.get("ended") or ""),
        float(wall) if isinstance(wall, int | float) else None,
        int(record.get("attempt") or 0),
        hosts_of(environment),
        _energy(record.get("energy")),
    )


def _energy(energy: Any) -> EnergyFacts | None:
    if not isinstance(energy, dict):
        return None
    return EnergyFacts(
        _number(energy.get("joules")),
        str(energy.get("missing") or ""),
        tuple(map(str, energy.get("sources") or [])),
        _number(energy.get("interval_s")),
        _number(energy.get("seconds")),
        len(energy.get("hosts") or []),
        _number(energy.get("sampler_cpu_s")),
        tuple(map(str, energy.get("notes") or [])),
    )


def _number(value: Any) -> float | None:
    return float(value) if finite(value) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _environment(
    record: Mapping[str, Any], environment: Mapping[str, Any]
) -> Iterable[tuple[str, str]]:
    node = _mapping(environment.get("node"))
    point = _mapping(record.get("point"))
    facts: dict[str, Any] = {
        "CPU": node.get("cpu_model"),
        "cores": node.get("cores"),
        "governor": node.get("governor"),
        "kernel": node.get("kernel"),
        # Of imported logs, which show the GPUs of a run, not all of the machine.
        "GPU": node.get("gpu_model"),
    }
    if isinstance(memory := node.get("memory_bytes"), int):
        facts["memory"] = f"{memory / 2**30:.1f} GiB"
    gpus = [
        " ".join(str(gpu[key]) for key in _GPU_KEPT if gpu.get(key))
        for gpu in node.get("gpus") or []
        if isinstance(gpu, dict)
    ]
    if gpus:
        facts["GPUs"] = ", ".join(f"{gpus.count(gpu)} x {gpu}" for gpu in dict.fromkeys(gpus))
    facts |= {str(name): version for name, version in _mapping(environment.get("versions")).items()}
    # HOROVOD_CYCLE_TIME is set by cycle_time_ms.
    stems = {str(parameter).removesuffix("_ms").removesuffix("_mb") for parameter in point}
    set_by = {*map(str, point), *(f"horovod_{stem}" for stem in stems)}
    git = record.get("git")
    if isinstance(git, dict):
        dirty = " with local changes" if git.get("dirty") else ""
        facts["git commit"] = f"{str(git.get('commit'))[:12]}{dirty}"
    for name, value in sorted(_mapping(environment.get("variables")).items()):
        # A variable that a parameter sets belongs to the point, not to the environment.
        if not _PLACE.fullmatch(str(name)) and str(name).lower() not in set_by:
            facts[str(name)] = value
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def read_facts(runs: Path, run_ids: Iterable[str]) -> dict[str, RunFacts]:
    """Facts of every run whose record can be read; the others are left out."""
    found = {}
    for run_id in run_ids:
        record = read_json(runs / run_id / RECORD)
        if record is not None:
            found[run_id] = run_facts(record)
    return found


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def group(facts: Iterable[RunFacts]) -> list[Environment]:
    """Environments by falling number of runs."""
    groups: dict[tuple[tuple[str, str], ...], Environment] = {}
    for run in facts:
        entry = groups.setdefault(run.environment, Environment(dict(run.environment)))
        entry.runs += 1
        entry.hosts.update(dict.fromkeys(run.hosts))
        entry.affinities.update(dict.fromkeys(run.affinities))
        entry.sources[run.source] = None
    return sorted(groups.values(), key=lambda entry: -entry.runs)


def differences(environments: Sequence[Environment]) -> dict[str, dict[str, int]]:
    """Facts that are not the same in all environments: fact -> value -> number of runs."""
    names = dict.fromkeys(name for entry in environments for name in entry.facts)
    found: dict[str, dict[str, int]] = {}
    for name in names:
        values: dict[str, int] = {}
        for entry in environments:
            value = entry.facts.get(name, "not recorded")
            values[value] = values.get(value, 0) + entry.runs
        if len(values) > 1:
            found[name] = values
    return found
