"""The machines behind the runs: a line per kind of host, and runs whose ranks were on unlike ones.

A GPU with a 5 % lower memory clock, a pair of GPUs that do not share a PCIe switch or one node on
another frequency governor slow a whole synchronous run down to the slowest rank.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Facts = tuple[tuple[str, str], ...]
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

    Native programs tell of every host (``ranks[i].hardware``); of others the host of the
    launcher is known (``node``).
    """
    kinds: dict[Facts, list[str]] = {}
    hosts: set[str] = set()
    before: Any = None
    for rank in environment.get("ranks") or []:
        hardware = rank.get("hardware") if isinstance(rank, dict) else None
        if not isinstance(hardware, dict):
            continue
        name = str(rank.get("slurm_node") or rank.get("host"))
        if name in hosts:
            continue
        hosts.add(name)
        # A thousand hosts alike are told of one after the other.
        if hardware != before:
            before = hardware
            alike = kinds.setdefault(_facts(hardware), [])
        alike.append(name)
    node = environment.get("node")
    if not kinds and isinstance(node, dict) and node.get("cpu_model"):
        gpus = [{"name": gpu.get("name")} for gpu in node.get("gpus") or []]
        told = _facts({**node, "cpus": node.get("cores"), "gpus": gpus})
        kinds[told] = [str(node.get("host"))]
    return tuple((facts, tuple(names)) for facts, names in kinds.items())


def _facts(hardware: Mapping[str, Any]) -> Facts:
    gpus = [gpu for gpu in hardware.get("gpus") or [] if isinstance(gpu, dict)]
    memory = hardware.get("memory_bytes")
    told = {
        "CPU": hardware.get("cpu_model"),
        "CPUs": hardware.get("cpus"),
        "NUMA nodes": hardware.get("numa_nodes"),
        "governor": hardware.get("governor"),
        # What firmware keeps for itself differs by some MiB between equal nodes.
        "memory": f"{memory / 2**30:.0f} GiB" if isinstance(memory, int) else None,
        "GPUs": _counted(gpu.get("name") for gpu in gpus),
        "GPU memory clock, MHz": _clocks(gpus, "memory"),
        "GPU SM clock, MHz": _clocks(gpus, "sm"),
        "GPU links": _counted((hardware.get("gpu_links") or {}).values()),
    }
    return tuple((name, str(value)) for name, value in told.items() if value not in (None, ""))


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
    found: dict[str, int] = {}
    for value in values:
        found[str(value)] = found.get(str(value), 0) + 1
    return " and ".join(f"{count} x {value}" for value, count in sorted(found.items()))


def machines(runs: Iterable[Hardware]) -> list[Machine]:
    """Kinds of hosts by falling number of runs."""
    found: dict[Facts, Machine] = {}
    for kinds in runs:
        for facts, hosts in kinds:
            machine = found.setdefault(facts, Machine(dict(facts)))
            machine.runs += 1
            for host in hosts:
                machine.hosts[host] = None
    return sorted(found.values(), key=lambda machine: -machine.runs)


def mismatches(runs: Mapping[str, Hardware]) -> list[Mismatch]:
    """Facts in which the ranks of one run had unlike hardware, with the runs; ``runs`` by id."""
    found: dict[tuple[str, str], Mismatch] = {}
    for run_id, kinds in runs.items():
        for fact in dict.fromkeys(name for facts, _ in kinds for name, _ in facts):
            values: dict[str, list[str]] = {}
            for facts, hosts in kinds:
                values.setdefault(dict(facts).get(fact, "unknown"), []).extend(hosts)
            clocks = fact.startswith("GPU ") and "clock" in fact
            if len(values) > 1 or (clocks and any(" and " in value for value in values)):
                key = (fact, " / ".join(sorted(values)))
                found.setdefault(key, Mismatch(fact, values)).runs.append(run_id)
    return list(found.values())
