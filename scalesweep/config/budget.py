"""What a campaign says of its budget: how much it may cost, and whether it goes where it teaches
most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.config.percent import read_percent
from scalesweep.core.errors import UserError


@dataclass(frozen=True)
class Spend:
    """A budget that is spent in rounds: ``budget`` in node-hours; ``until``: half width of an
    interval over its value at which it is precise (0.1 for 10 %), None: as long as the budget
    lasts; ``target``: what is asked, as of `scalesweep advise`, empty: everything."""

    budget: float
    until: float | None
    target: str


def read_budget(content: Mapping[str, Any]) -> float | None:
    """Node-hours that a campaign's jobs may cost; None without a budget."""
    node_hours: float | None = content.get("budget", {}).get("node_hours")
    return node_hours


def read_spend(content: Mapping[str, Any], where: str) -> Spend | None:
    """How a campaign's ``budget`` is spent in rounds; None where it is not ``adaptive``.

    Raises UserError.
    """
    section = content.get("budget", {})
    until, target = section.get("until"), section.get("target", "")
    if section.get("adaptive", False):
        share = None if until is None else read_percent(until, f"{where}.until")
        return Spend(float(section["node_hours"]), share, target)
    for key in ("until", "target"):
        if key in section:
            raise UserError(f"{where}.{key}: holds with 'adaptive: true' only; add it")
    return None
