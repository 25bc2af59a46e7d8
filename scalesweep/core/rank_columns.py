"""What a record says of each rank, by column: a value that many ranks share is stored once.

A column is ``{"values": [...]}``, with a value for each rank or one for all. ``"at": null`` marks
values of which it is not known which rank has which.

Programs write rows, a mapping for each rank; ``by_column`` turns them into columns when a record
is written. Standard library only: the launcher imports this module on compute nodes.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any

Column = dict[str, Any]


def column(values: Sequence[Any], count: int) -> Column:
    """The column of ``values``, one for each of ``count`` ranks (or hosts).

    Of another number than ``count`` it is not known which is whose.
    """
    if len(values) != count:
        return {"values": list(values), "at": None}
    alike = len({repr(value) for value in values}) == 1  # 1, 1.0 and true are unlike
    return {"values": list(values[:1] if alike else values)}


def values_of(packed: Any) -> list[Any]:
    """The values of a column, some perhaps more than once; none of what is no column."""
    values = packed.get("values") if isinstance(packed, dict) else None
    return values if isinstance(values, list) else []


def by_rank(packed: Any, count: int) -> list[Any] | None:
    """The value of each of ``count`` ranks; None where it is not known whose the values are."""
    values = values_of(packed)
    if "at" in (packed or ()):
        return None
    return values if len(values) == count else values * count if len(values) == 1 else None


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
    return list(dict.fromkeys(map(str, values_of(machine_column(resources)))))


def by_column(record: Mapping[str, Any]) -> dict[str, Any]:
    """``record`` with columns in the place of rows (docs/reference/files.md, record.json).

    What is in columns already stays as it is. Names of hosts and nodes are among the resources
    alone, and facts of hosts are those that the first rank of each reports.
    """
    count = record["point"]["ranks"]
    resources, environment = dict(record["resources"]), dict(record["environment"])
    for key in ("hosts", "slurm_nodes"):
        if isinstance(names := resources.get(key), list):
            known = any(name is not None for name in names)
            resources[key] = column(names, count) if known else None
    if isinstance(rows := environment.get("ranks"), list):
        environment["ranks"] = _columns(rows, count, ("host", "slurm_node", "hardware"))
        hosts: dict[str, dict[str, Any]] = {}
        for row in rows:
            if isinstance(hardware := row.get("hardware"), dict):
                hosts.setdefault(str(row.get("slurm_node") or row.get("host")), hardware)
        if hosts:
            facts = _columns([*hosts.values()], len(hosts))
            environment["hardware"] = {"hosts": [*hosts], "facts": facts}
    return {**record, "resources": resources, "environment": environment}


def _columns(
    rows: Sequence[Mapping[str, Any]], count: int, without: Container[str] = ()
) -> dict[str, Column]:
    """Columns of the rows of ``count`` ranks or hosts, by their keys."""
    keys = dict.fromkeys(key for row in rows for key in row if key not in without)
    return {key: column([row.get(key) for row in rows], count) for key in keys}
