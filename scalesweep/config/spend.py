"""What a campaign says of a budget that is spent where it teaches most."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.core.errors import UserError


@dataclass(frozen=True)
class Spend:
    """``budget`` in node-hours; ``until``: half width of an interval over its value at which it is
    precise (0.1 for 10 %), None: as long as the budget lasts; ``target``: what is asked, as of
    `snakemake advise`, empty: everything."""

    budget: float
    until: float | None
    target: str


def read_spend(content: Mapping[str, Any], where: str) -> Spend | None:
    """The section ``spend`` of a campaign; None without one. Raises UserError."""
    section = content.get("spend")
    if section is None:
        return None
    until = section.get("until")
    percent = float(until.removesuffix("%")) if until else None
    if percent is not None and not 0 < percent <= 100:
        raise UserError(f"{where}.until: must be above 0 % and at most 100 %, not {percent:g} %")
    share = None if percent is None else percent / 100
    return Spend(float(section["budget_node_hours"]), share, section.get("target", ""))


def read_budget(content: Mapping[str, Any]) -> float | None:
    """Node-hours that a campaign's jobs may cost: the smaller of its two budgets; None without."""
    sections = (content, content.get("spend", {}))
    given = [section["budget_node_hours"] for section in sections if "budget_node_hours" in section]
    return min(given, default=None)
