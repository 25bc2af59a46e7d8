"""What a record says of each rank, by column: a value that many ranks share is stored once.

A column is ``{"values": [...], "at": [...]}``: rank ``r`` has ``values[at[r]]``. Without ``at``
there is a value for each rank, or one for all. ``"at": null`` marks values of which it is not
known which rank has which. ``values`` are in the order of the first rank that has them.

Programs write rows, a mapping for each rank; ``by_column`` turns them into columns, for the
launcher and importers when they write a record and for readers of records of schema 1.
Standard library only: the launcher imports this module on compute nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Column = dict[str, Any]

SAME = "hosts"  # in the place of the column of node names: they are the host names
_HASHED = {str, int, type(None)}  # no two values of these types are equal, but for themselves


def column(values: Sequence[Any], count: int) -> Column:
    """The column of ``values``, one for each of ``count`` ranks (or hosts).

    Of another number than ``count`` it is not known which is whose.
    """
    if len(values) != count:
        return {"values": list(values), "at": None}
    # Values of other types are distinguished by their text: 1, 1.0 and true would be one key.
    plain = set(map(type, values)) <= _HASHED
    keys: Sequence[Any] = values if plain else [repr(value) for value in values]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    if len(places) != 1 and 2 * len(places) >= count:
        return {"values": list(values)}
    firsts = dict(zip(reversed(keys), reversed(values), strict=True))
    levels = {"values": [firsts[key] for key in places]}
    return levels if len(places) == 1 else {**levels, "at": [places[key] for key in keys]}


def values_of(packed: Any) -> list[Any]:
    """The values of a column, some perhaps more than once; none of what is no column."""
    values = packed.get("values") if isinstance(packed, dict) else None
    return values if isinstance(values, list) else []


def by_rank(packed: Any, count: int) -> list[Any] | None:
    """The value of each of ``count`` ranks; None where it is not known whose the values are."""
    values = values_of(packed)
    if not values or "at" not in packed:
        return values if len(values) == count else values * count if len(values) == 1 else None
    at = packed["at"]
    return None if at is None or len(at) != count else [values[place] for place in at]


def machine_column(resources: Mapping[str, Any]) -> Any:
    """The column of the machines of a run's ranks; the names Slurm gave come first.

    Host names may be shared by several nodes; of a node that Slurm did not name only the host
    name is known.
    """
    nodes = resources.get("slurm_nodes")
    named = values_of(nodes)
    return nodes if named and all(named) else resources.get("hosts")


def machine_names(resources: Mapping[str, Any]) -> list[str]:
    """The machines of a run, each once, in the order of their first ranks."""
    names = values_of(machine_column(resources))
    return list(dict.fromkeys(names if set(map(type, names)) == {str} else map(str, names)))


def by_column(record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with columns in the place of rows (docs/reference/files.md, record.json).

    What is in columns already stays as it is.
    """
    result, count = dict(record), record["point"]["ranks"]
    result["resources"] = resources = _resources(record["resources"], count)
    result["environment"] = _environment(record["environment"], resources, count)
    if "energy" in result:
        result["energy"] = _energy(result["energy"])
    return result


def _resources(given: Mapping[str, Any], count: int) -> dict[str, Any]:
    resources = dict(given)
    hosts, nodes = resources.get("hosts"), resources.get("slurm_nodes")
    if isinstance(hosts, list):
        resources["hosts"] = column(hosts, count) if hosts else None
    if isinstance(nodes, list):
        there = any(node is not None for node in nodes)
        own = SAME if nodes == hosts else column(nodes, count)
        resources["slurm_nodes"] = own if there else None
    return resources


def _environment(
    given: Mapping[str, Any], resources: Mapping[str, Any], count: int
) -> dict[str, Any]:
    environment = dict(given)
    rows = environment.get("ranks")
    if not isinstance(rows, list):
        return environment
    facts = {
        name: column([row.get(name) for row in rows], count)
        for name in dict.fromkeys(name for row in rows for name in row)
        if name != "hardware"
    }
    # A rank's host and node are among the resources, where the program says the same there.
    if "host" in facts and facts["host"] == resources.get("hosts"):
        del facts["host"]
    if "slurm_node" in facts and _same_nodes(facts["slurm_node"], resources):
        del facts["slurm_node"]
    environment["ranks"] = facts
    if hardware := _hardware(rows, resources):
        environment["hardware"] = hardware
    return environment


def _same_nodes(nodes: Column, resources: Mapping[str, Any]) -> bool:
    known = resources.get("slurm_nodes")
    if known is None:
        return all(node is None for node in nodes["values"])
    return bool(nodes == (resources.get("hosts") if known == SAME else known))


def _hardware(
    rows: Sequence[Mapping[str, Any]], resources: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Facts of the hosts, each from the first of its ranks that reports them; None without any."""
    by_host: dict[str, dict[str, Any]] = {}
    for row in rows:
        hardware = row.get("hardware")
        if isinstance(hardware, dict):
            by_host.setdefault(str(row.get("slurm_node") or row.get("host")), hardware)
    if not by_host:
        return None
    hosts, facts_of = list(by_host), list(by_host.values())
    return {
        "hosts": None if hosts == machine_names(resources) else hosts,
        "facts": {
            name: column([facts.get(name) for facts in facts_of], len(facts_of))
            for name in dict.fromkeys(name for facts in facts_of for name in facts)
        },
    }


def _energy(energy: Mapping[str, Any]) -> dict[str, Any]:
    """``domains`` by domain, what was measured on the hosts that have it in columns."""
    rows = energy.get("domains") or {}
    domain: Mapping[str, Any] = next(iter(rows.values()), {})
    if "joules" in domain:  # in columns already
        return dict(energy)
    domains: dict[str, dict[str, dict[str, Any]]] = {}
    for host, of_host in rows.items():
        for name, measured in of_host.items():
            domains.setdefault(name, {})[host] = measured
    by_domain = {
        name: {
            "hosts": None if list(of_hosts) == energy.get("hosts") else list(of_hosts),
            **{
                key: column([each.get(key) for each in of_hosts.values()], len(of_hosts))
                for key in ("joules", "counted", "seconds")
            },
        }
        for name, of_hosts in domains.items()
    }
    return {**energy, "domains": by_domain}
