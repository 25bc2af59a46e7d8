"""The layouts of a study on the first screen: a small table, a line for each scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.aspects.layouts.findings import BEST
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import (
    ahead_text,
    best_layouts,
    failed_text,
    loss_text,
    value_text,
    without_repeats,
)
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import percent
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, Finding

MAX_SETTINGS = 4


@dataclass(frozen=True)
class LayoutCard:
    """``heads`` of the columns; ``groups``: of what is computed the lines of its scales."""

    heads: Sequence[str]
    groups: Sequence[tuple[str, Sequence[Sequence[str]]]]
    note: str


def layout_card(results: ExperimentResults, findings: Sequence[Finding]) -> LayoutCard | None:
    """What the first screen says of layouts; None where the experiment is no study of them."""
    settings = best_layouts(results)
    if not settings or results.main is None:
        return None
    clear = {
        (finding.evidence["setting"], finding.evidence["scale"])
        for finding in findings
        if finding.rule == BEST and finding.level == CONFIRMED
    }
    heads = [
        results.scale, "Best layout", results.main.label, "Ahead of the next", "Median layout",
        "Best layout of the scale before", "Failed",
    ]  # fmt: skip
    groups = [
        (setting, [_line(results, row, (row.setting, row.scale) in clear) for row in rows])
        for setting, rows in list(settings.items())[:MAX_SETTINGS]
    ]
    rows = [row for of in settings.values() for row in of]
    note = (
        "One run of each layout: no lead is confirmed, and a part of each is due to the choice of "
        "the best of many."
        if without_repeats(rows)
        else "Leads and losses are of repeats that had no part in the choice of the best; clear: "
        "the best is told from every other layout."
    )
    more = len(settings) - MAX_SETTINGS
    note += f" The table best_layouts has {more} more settings." if more > 0 else ""
    return LayoutCard(heads, groups, note)


def _line(results: ExperimentResults, row: BestLayout, clear: bool) -> list[str]:
    failed = f"{row.failed:,} of {row.tried:,}" if row.failed else "–"
    if Cause.NOT_STATED not in row.causes and row.causes:
        failed += f" ({row.causes})"
    if row.layout is None:
        return [f"{row.scale:,}", "none ran", "–", "–", "–", "–", failed]
    ahead = "level with it" if row.ahead == 1 else ahead_text(row)
    ahead += ", clear" if clear else ""
    failures = failed_text(row)
    layout = f"{row.layout} ({failures})" if failures else row.layout
    return [
        f"{row.scale:,}", layout, value_text(results, row.value),
        ahead if row.next_layout else "no other ran",
        percent(row.median) if row.ran > 1 else "–", _carried(row), failed,
    ]  # fmt: skip


def _carried(row: BestLayout) -> str:
    if row.carried_from is None:
        return "–"
    if row.carried_loss is None:
        return f"has no result ({row.carried_fails or 'none of its axes'})"
    words = "is the best" if row.carried_loss == 0 else f"loses {loss_text(row)}"
    changed = f" with {row.carried_changes}" if row.carried_changes else ""
    failed = "" if row.carried_fails in ("", "not planned", "no result") else row.carried_fails
    return f"{words}{changed}" + (f" (else {failed})" if failed else "")
