"""Where results come from: the environments of runs, grouped, and where they differ."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from scalesweep.core.rank_columns import machine_names, values_of
from scalesweep.core.record import MEASURED_COMMIT, dates_of
from scalesweep.tables.hardware import Hardware, hosts_of

FACTS = "_facts"  # the column of the summary that keeps them, as JSON text

# Set by launchers for each rank or job: they say where a run was, not how it was steered.
_PLACE = re.compile(
    r"SLURM_.*|HOROVOD_(RANK|SIZE|LOCAL_\w+|CROSS_\w+|GLOO_\w+|HOSTNAME"
    r"|ELASTIC|RENDEZVOUS\w*)|(NCCL|GLOO)_SOCKET_IFNAME"
    # Of PyTorch's launchers (docs: torch.distributed, environment variable initialization).
    r"|MASTER_(ADDR|PORT)|((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)|ROLE_NAME|TORCHELASTIC_\w+"
    # PyTorch sets it to a folder of the user's.
    r"|TORCHINDUCTOR_CACHE_DIR"
    # Of TensorFlow's own, for its clusters: addresses, and what its strategies set.
    r"|TF_CONFIG|TF_PS_DISABLE_ASYNC_EXECUTOR_GLOBALLY|TF_ENABLE_EAGER_CLIENT_STREAMING_ENQUEUE"
)
_OF_ENERGY = ("joules", "missing", "sources", "interval_s", "notes")
_GPU_KEPT = ("name", "memory.total", "driver_version")


# Facts: commits of scalesweep, of the study, and of the repository that an external program is in.
# TensorFloat-32 on the GPUs of a run, and its values.
TF32_FACT = "TF32"
IN_FORCE, NOT_IN_FORCE, NOT_SUPPORTED, MIXED = (
    "in force",
    "supported, not in force",
    "not supported",
    "in force on some ranks",
)
GIT, STUDY, PROGRAM = "git commit", "git commit of the study", "git commit of the program"


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
    hardware: Hardware = ()
    energy: dict[str, Any] | None = None  # how it was measured; None where nothing says it


@dataclass
class Environment:
    """Runs with the same environment, the hosts they were on and their ranks' affinity masks."""

    facts: dict[str, str]
    runs: int = 0
    hosts: dict[str, None] = field(default_factory=dict)
    affinities: dict[str, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)


def noted(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a program notes under a name; nothing if that is no mapping: a native program may note
    what it likes, by any name."""
    said = (record.get("notes") or {}).get(name)
    return said if isinstance(said, dict) else {}


def run_facts(record: Mapping[str, Any]) -> RunFacts:
    """Facts of one record; whatever it lacks is left out."""
    environment = record.get("environment") or {}
    hosts = tuple(machine_names(record.get("resources") or {}))
    affinities = values_of((environment.get("ranks") or {}).get("affinity"))
    energy, wall = record.get("energy"), record.get("wall_s")
    return RunFacts(
        tuple(_environment(record, environment)),
        hosts,
        tuple(dict.fromkeys(str(mask) for mask in affinities if mask is not None)),
        str(record.get("source")),
        *dates_of(record),
        float(wall) if isinstance(wall, int | float) else None,
        int(record.get("attempt") or 0),
        hosts_of(environment),
        None if energy is None else {name: energy.get(name) for name in _OF_ENERGY},
    )


# Names of variables are the same in thousands of runs.
@lru_cache(maxsize=4096)
def _is_place(variable: str) -> bool:
    return _PLACE.fullmatch(variable) is not None


def _environment(
    record: Mapping[str, Any], environment: Mapping[str, Any]
) -> Iterable[tuple[str, str]]:
    """Facts of a record on hardware, versions, commits and variables, as (name, text), if known."""
    node = environment.get("node") or {}
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
    ]
    if gpus:
        facts["GPUs"] = ", ".join(f"{gpus.count(gpu)} x {gpu}" for gpu in dict.fromkeys(gpus))
    facts |= environment.get("versions") or {}
    program = (record.get("program") or {}).get("files") or {}
    measured = [noted(record, MEASURED_COMMIT), *(file.get("git") for file in program.values())]
    commits = {
        GIT: record.get("git"),
        STUDY: record.get("study"),
        PROGRAM: next(filter(None, measured), None),
    }
    for name, git in commits.items():
        if git:
            dirty = " with local changes" if git.get("dirty") else ""
            facts[name] = f"{str(git.get('commit'))[:12]}{dirty}"
    if image := record.get("container"):
        known = image.get("sif_id") or image.get("blake2b")
        facts["container"] = f"{image.get('path')}{f', {known}' if known else ''}"
    facts[TF32_FACT] = _tf32(noted(record, "tf32"))
    # A variable that a parameter sets belongs to the point, not to the environment:
    # HOROVOD_CYCLE_TIME is set by cycle_time_ms.
    names = {name.removesuffix("_ms").removesuffix("_mb") for name in record.get("point") or ()}
    set_by = {*record.get("point", ()), *(f"horovod_{name}" for name in names)}
    for name, value in sorted((environment.get("variables") or {}).items()):
        if not _is_place(name) and name.lower() not in set_by:
            facts[name] = value
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def _tf32(said: Mapping[str, Any]) -> str | None:
    """What became of TensorFloat-32; None on CPUs, which have none, and where it is not noted."""
    if not said or said.get("device") == "CPU":
        return None
    if said.get("in_force") is None:
        return MIXED
    if said["in_force"]:
        return IN_FORCE
    return NOT_IN_FORCE if said.get("supported") else NOT_SUPPORTED


def read_facts(run_ids: Sequence[str], texts: Sequence[Any]) -> dict[str, RunFacts]:
    """Facts of runs by their ids, from the texts in the summary; None leaves a run out."""
    known = zip(run_ids, texts, strict=True)
    read = TypeAdapter(RunFacts).validate_json
    return {run_id: read(text) for run_id, text in known if isinstance(text, str)}


def group(facts: Iterable[RunFacts]) -> list[Environment]:
    """Environments by falling number of runs."""
    groups: dict[tuple[tuple[str, str], ...], Environment] = {}
    for run in facts:
        entry = groups.setdefault(run.environment, Environment(dict(run.environment)))
        entry.runs += 1
        for host in run.hosts:  # a dict of each run's hosts takes three times as long
            entry.hosts[host] = None
        entry.affinities.update(dict.fromkeys(run.affinities))
        entry.sources[run.source] = None
    return sorted(groups.values(), key=lambda entry: -entry.runs)


def differences(environments: Sequence[Environment]) -> dict[str, dict[str, int]]:
    """Facts that are not the same in all environments: fact -> value -> number of runs."""
    names = dict.fromkeys(name for entry in environments for name in entry.facts)
    differing = {}
    for name in names:
        values: Counter[str] = Counter()
        for entry in environments:
            values[entry.facts.get(name, "not recorded")] += entry.runs
        if len(values) > 1:
            differing[name] = dict(values)
    return differing
