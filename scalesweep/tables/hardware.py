"""The machines behind the runs: a line per kind of host, and runs on more than one kind.

A GPU with a 5 % lower memory clock, a pair of GPUs that do not share a PCIe switch or one node on
another frequency governor slow a whole synchronous run down to the slowest rank.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scalesweep.core.rank_columns import by_rank, values_of

Facts = tuple[tuple[str, str], ...]
# How facts about GPUs are called.
GPUS, GPU_LINKS = "GPUs", "GPU links"
MEMORY_CLOCK, CORE_CLOCK = "GPU memory clock, MHz", "GPU SM clock, MHz"
# Kinds of hosts of a run: facts, and the hosts that they are true of.
Hardware = tuple[tuple[Facts, tuple[str, ...]], ...]


@dataclass
class Machine:
    """Hosts with the same hardware, and how many runs had ranks on one of them."""

    facts: dict[str, str]
    hosts: dict[str, None] = field(default_factory=dict)
    runs: int = 0


@dataclass
class Mismatch:
    """A fact in which the hosts (or the GPUs of a host) of one run differ."""

    fact: str
    values: dict[str, list[str]]  # value -> hosts
    runs: list[str] = field(default_factory=list)


def hosts_of(environment: Mapping[str, Any]) -> Hardware:
    """Hardware facts of the hosts of a run, from its record's ``environment``.

    Native programs tell of every host (``hardware``); of others the host of the launcher is known
    (``node``).
    """
    hardware = environment.get("hardware")
    if isinstance(hardware, dict) and hardware.keys() >= {"facts", "hosts"}:
        hosts = tuple(map(str, hardware["hosts"]))
        return _grouped(json.dumps(_visible(hardware["facts"], environment)), hosts)
    node = environment.get("node")
    if isinstance(node, dict) and node.get("cpu_model"):
        gpus = [{"name": gpu.get("name")} for gpu in node.get("gpus") or []]
        named = {**node, "cpus": node.get("cores"), "gpus": gpus}
        facts = _texts((name, fact(named.get(key))) for name, key, fact in _FACTS)
        return ((facts, (str(node.get("host")),)),)
    return ()


def _visible_gpus(text: str) -> list[str]:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` names: numbers, or what begins a UUID.

    CUDA ignores -1, and what follows it: ``""`` and ``"-1"`` hide all GPUs.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    return names[: names.index("-1")] if "-1" in names else names


def _visible(columns: Mapping[str, Any], environment: Mapping[str, Any]) -> Mapping[str, Any]:
    """The columns with those GPUs alone that the ranks could see, where numbers tell which.

    nvidia-smi lists all GPUs of a host by their place on the bus. CUDA numbers the fastest from 0
    on, unless CUDA_DEVICE_ORDER says otherwise: unlike GPUs are then left as they are.
    """
    ranks, variables = (environment.get(name) for name in ("ranks", "variables"))
    seen = values_of(ranks.get("visible_gpus")) if isinstance(ranks, dict) else []
    if not seen or not all(isinstance(text, str) for text in seen):
        return columns
    names = {name for text in seen for name in _visible_gpus(text)}
    by_bus = isinstance(variables, dict) and variables.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    hosts = [_gpus(value) for value in values_of(columns.get("gpus"))]
    if not all(name.isdecimal() and int(name) < min(map(len, hosts), default=0) for name in names):
        return columns
    if not by_bus and any(len({str(gpu.get("name")) for gpu in gpus}) > 1 for gpus in hosts):
        return columns
    kept = {f"GPU{int(name)}" for name in names}
    gpus = [[gpu for n, gpu in enumerate(each) if f"GPU{n}" in kept] for each in hosts]
    links = [
        {pair: link for pair, link in (each or {}).items() if kept.issuperset(pair.split("-"))}
        for each in values_of(columns.get("gpu_links"))
    ]
    shown = {"gpus": gpus, "gpu_links": links}
    return {**columns, **{key: {**columns[key], "values": v} for key, v in shown.items() if v}}


@lru_cache(maxsize=64)  # thousands of runs have had the same hosts
def _grouped(columns_text: str, hosts: tuple[str, ...]) -> Hardware:
    """Hosts by their facts, from columns over them."""
    columns = json.loads(columns_text)
    known = {key: by_rank(columns.get(key) or {}, len(hosts)) for _, key, _ in _FACTS}
    kinds: dict[Facts, list[str]] = {}
    for place, host in enumerate(hosts):
        values = {key: every[place] if every else None for key, every in known.items()}
        facts = _texts((name, fact(values[key])) for name, key, fact in _FACTS)
        kinds.setdefault(facts, []).append(host)
    return tuple((facts, tuple(names)) for facts, names in kinds.items())


def _texts(facts: Iterable[tuple[str, str]]) -> Facts:
    """Facts without those that are not known."""
    return tuple((name, words) for name, words in facts if words)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _memory(value: Any) -> str:
    # What firmware keeps for itself differs by some MiB between equal nodes.
    return f"{value / 2**30:.0f} GiB" if isinstance(value, int) else ""


def _gpus(value: Any) -> list[Mapping[str, Any]]:
    return [gpu for gpu in value or [] if isinstance(gpu, dict)]


def _links(value: Any) -> str:
    return _counted((value or {}).values())


def _clocks(gpus: Iterable[Mapping[str, Any]], domain: str) -> str:
    """The clock that each GPU is set to under load: what was set for applications, else the most
    it can do; what it ran at when asked may be an idle clock."""
    values = [
        gpu.get(f"application_{domain}_clock_mhz") or gpu.get(f"max_{domain}_clock_mhz")
        for gpu in gpus
    ]
    return _counted(f"{value:g}" for value in values if isinstance(value, int | float))


def _counted(values: Iterable[Any]) -> str:
    """``4 x A100``, ``1 x 679 and 3 x 715``; a plain value where there is one."""
    counts = sorted(Counter(map(str, values)).items())
    return " and ".join(f"{count} x {value}" for value, count in counts)


# As they are called, the fact of a host they are made of, and how.
_FACTS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("CPU", "cpu_model", _text),
    ("CPUs", "cpus", _text),
    ("NUMA nodes", "numa_nodes", _text),
    ("governor", "governor", _text),
    ("memory", "memory_bytes", _memory),
    (GPUS, "gpus", lambda gpus: _counted(gpu.get("name") for gpu in _gpus(gpus))),
    (MEMORY_CLOCK, "gpus", lambda gpus: _clocks(_gpus(gpus), "memory")),
    (CORE_CLOCK, "gpus", lambda gpus: _clocks(_gpus(gpus), "sm")),
    (GPU_LINKS, "gpu_links", _links),
)


def machines(runs: Iterable[Hardware]) -> list[Machine]:
    """Kinds of hosts by falling number of runs."""
    machines: dict[Facts, Machine] = {}
    for kinds in runs:
        for facts, hosts in kinds:
            machine = machines.setdefault(facts, Machine(dict(facts)))
            machine.runs += 1
            for host in hosts:
                machine.hosts[host] = None
    return sorted(machines.values(), key=lambda machine: -machine.runs)


def mismatches(runs: Mapping[str, Hardware]) -> list[Mismatch]:
    """Facts in which the ranks of one run had different hardware, with the runs; ``runs`` by id."""
    mismatched: dict[tuple[str, str], Mismatch] = {}
    for run_id, kinds in runs.items():
        for fact in dict.fromkeys(name for facts, _ in kinds for name, _ in facts):
            values: dict[str, list[str]] = {}
            for facts, hosts in kinds:
                values.setdefault(dict(facts).get(fact, "unknown"), []).extend(hosts)
            clocks = fact.startswith("GPU ") and "clock" in fact
            if len(values) > 1 or (clocks and any(" and " in value for value in values)):
                key = (fact, " / ".join(sorted(values)))
                mismatched.setdefault(key, Mismatch(fact, values)).runs.append(run_id)
    return list(mismatched.values())
