"""Keys of campaign and site files in names and forms that they had once: read, with a line."""

import logging
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from scalesweep.core.errors import UserError

# Always in GiB, whatever they were called.
RENAMED = {
    "memory_gb_per_node": "memory_gib_per_node",
    "memory_gb_per_rank": "memory_gib_per_rank",
    "memory_gb": "memory_gib",
}

_log = logging.getLogger(__name__)
_warned: set[tuple[Path, str]] = set()


def rename_keys(content: Any, path: Path) -> None:
    """Give old keys of a file's content, checked or not, their names of today, in place.

    Logs a line for each, once in a process. Raises UserError where both names are given.
    """
    for where, mapping in _mappings(content, ""):
        for old in RENAMED.keys() & mapping.keys():
            new = RENAMED[old]
            if new in mapping:
                raise UserError(f"{path}: {where}{old}: the same as {new}; leave out {old}")
            mapping[new] = mapping.pop(old)
            _log_new_name(path, f"{where}{old}", f"{new} (GiB, as before)")


def rewrite_older_forms(content: Any, path: Path) -> None:
    """Give a campaign's budget and the margins of its history their form of today, in place.

    Logs a line for each, once in a process. Raises UserError where both forms are given. What was
    wrong in the older form is wrong in that of today, which the schema says.
    """
    if not isinstance(content, dict):
        return
    budget: dict[str, Any] = {}
    if "budget_node_hours" in content:
        budget = {"node_hours": content["budget_node_hours"]}
    if isinstance(spend := content.get("spend"), dict):
        rounds = {key: value for key, value in spend.items() if key != "budget_node_hours"}
        limits = [*budget.values(), *(v for k, v in spend.items() if k == "budget_node_hours")]
        numbers = all(isinstance(limit, int | float) for limit in limits)
        limit = {"node_hours": min(limits) if numbers else limits[-1]} if limits else {}
        budget = {**limit, "adaptive": True, **rounds}
    if budget:
        older = [key for key in ("budget_node_hours", "spend") if key in content]
        if "budget" in content:
            raise UserError(f"{path}: {older[0]}: the same as budget; leave out {older[0]}")
        for key in older:
            del content[key]
        content["budget"] = budget
        text = yaml.safe_dump({"budget": budget}, default_flow_style=None, sort_keys=False)
        _log_new_name(path, ", ".join(older), " ".join(text.split()))
    history = content.get("history")
    if isinstance(history, dict):
        _margins_in_percent(history, path)


def _margins_in_percent(history: dict[str, Any], path: Path) -> None:
    """Write the shares among a history's margins in percent, in place."""
    margins = history.get("margins")
    places = [(history, "margin", "history.margin")]
    if isinstance(margins, dict):
        places += [(margins, metric, f"history.margins.{metric}") for metric in margins]
    for mapping, key, where in places:
        share = mapping.get(key)
        if isinstance(share, float) and 0 < share < 1:
            mapping[key] = f"{(Decimal(str(share)) * 100).normalize():f} %"
            _log_new_name(path, f"{where}: {share:g}", mapping[key])


def _log_new_name(path: Path, old: str, new: str) -> None:
    """Log what an old key or form is called today, once in a process."""
    if (path, old) not in _warned:
        _warned.add((path, old))
        _log.warning("%s: %s is now %s", path, old, new)


def _mappings(content: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mappings of a file that may have such keys, each with the start of their names."""
    if not isinstance(content, dict):
        return
    yield where, content
    for name in ("slurm", "staging", "experiments"):
        part = content.get(name)
        if name == "experiments" and isinstance(part, dict):
            for experiment, spec in part.items():
                if isinstance(spec, dict):
                    yield f"{where}experiments.{experiment}.", spec
        elif isinstance(part, dict):
            yield from _mappings(part, f"{where}{name}.")
