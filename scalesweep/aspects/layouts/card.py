"""The layouts of a study on the first screen: a small table, a line for each scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.aspects.layouts.findings import BEST
from scalesweep.aspects.layouts.study import LayoutStudy, study_of
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import (
    ahead_text,
    best_layouts,
    failed_text,
    loss_text,
    measured_text,
    value_text,
    without_repeats,
)
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import percent, text_of
from scalesweep.core.layouts import LAYOUT
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, Finding

MAX_SETTINGS = 4
MAX_CHOICES = 9  # parameters of a layout that get columns of their own


@dataclass(frozen=True)
class CardColumn:
    """A column: its heading, and whether its cells are numbers."""

    heading: str
    number: bool = False


@dataclass(frozen=True)
class LayoutCard:
    """``groups``: of what is computed the lines of its scales, a cell for each column."""

    columns: Sequence[CardColumn]
    groups: Sequence[tuple[str, Sequence[Sequence[str]]]]
    note: str


def layout_card(results: ExperimentResults, findings: Sequence[Finding]) -> LayoutCard | None:
    """What the first screen says of layouts; None where the experiment is no study of them."""
    settings, study, main = best_layouts(results), study_of(results.entry), results.main
    if not settings or study is None or main is None:
        return None
    clear = {
        (finding.evidence["setting"], finding.evidence["scale"])
        for finding in findings
        if finding.rule == BEST and finding.state == CLEAR
    }
    rows = [row for of in settings.values() for row in of]
    choices = _choices(study)
    shares = [
        (results.measures[name], attribute)
        for name, attribute in (
            (rows[0].utilisation_metric, "utilisation"), (rows[0].memory_metric, "memory"),
        )
        if name is not None
    ]  # fmt: skip
    columns = [
        CardColumn(results.scale, True),
        *([CardColumn(name, True) for name in choices] or [CardColumn("Best layout")]),
        CardColumn(main.axis_label, True), *(CardColumn(m.axis_label, True) for m, _ in shares),
        CardColumn("Ahead of the next", True), CardColumn("Median / best", True),
        CardColumn("Best layout of the scale before"), CardColumn("Failed"),
    ]  # fmt: skip
    groups = [
        (
            setting,
            [
                _line(results, row, study, choices, shares, (row.setting, row.scale) in clear)
                for row in of
            ],
        )
        for setting, of in list(settings.items())[:MAX_SETTINGS]
    ]
    note = (
        "The first layouts have one result each: no lead is confirmed, and a part of each is due "
        "to the choice of the best of many."
        if without_repeats(rows)
        else "Leads and losses are of repeats that had no part in the choice of the best; clear: "
        "the best is told from every other layout" + _in_jobs(rows)
    )
    if {cause for row in rows for cause in _causes(row)} == {Cause.NOT_STATED}:
        note += " The source does not say why layouts failed."
    more = len(settings) - MAX_SETTINGS
    note += f" The table best_layouts has {more} more settings." if more > 0 else ""
    return LayoutCard(columns, groups, note)


def _in_jobs(rows: Sequence[BestLayout]) -> str:
    """The end of what "clear" means; of imported runs with what is not known of them."""
    imported = any(row.source == "imported" for row in rows)
    return ", if each repeat was a job of its own: the source does not say." if imported else "."


def _choices(study: LayoutStudy) -> list[str]:
    """The parameters of a layout, a column for each; empty where one text has room for more."""
    names = [*study.roles, *study.others]
    return names if len(names) <= MAX_CHOICES and LAYOUT not in study.others else []


def _causes(row: BestLayout) -> list[str]:
    return [part.rpartition(" ")[0] for part in row.causes.split(", ") if part]


def _line(
    results: ExperimentResults,
    row: BestLayout,
    study: LayoutStudy,
    choices: Sequence[str],
    shares: Sequence[tuple[Measure, str]],
    clear: bool,
) -> list[str]:
    failed = f"{row.failed:,} of {row.tried:,}" if row.failed else "–"
    if Cause.NOT_STATED not in row.causes and row.causes:
        failed += f" ({row.causes})"
    if row.layout is None:
        layout = ["–"] * len(choices) or ["none ran"]
        return [f"{row.scale:,}", *layout, *["–"] * (len(shares) + 4), failed]
    sizes = study.sizes(row.point) | {name: row.point[name] for name in study.others}
    ahead = "0 %" if row.ahead == 1 else ahead_text(row)
    ahead += ", clear" if clear else ""
    failures = failed_text(row)
    layout_text = f"{row.layout} ({failures})" if failures else row.layout
    if failures and choices:
        failed = "; ".join(part for part in (failed, f"of the best {failures}") if part != "–")
    return [
        f"{row.scale:,}", *([text_of(sizes[name]) for name in choices] or [layout_text]),
        value_text(results, row.value, unit=False),
        *(measured_text(measure, getattr(row, name)) for measure, name in shares),
        ahead if row.next_layout else "no other ran",
        percent(row.median) if row.ran > 1 else "–", _carried(row), failed,
    ]  # fmt: skip


def _carried(row: BestLayout) -> str:
    if row.carried_from is None:
        return "–"
    if row.carried_loss is None:
        return f"has no result ({row.carried_fails or 'none of its axes'})"
    words = "still the best" if row.carried_loss == 0 else f"loses {loss_text(row)}"
    changed = f" with {row.carried_changes}" if row.carried_changes else ""
    failed = "" if row.carried_fails in ("", "not planned", "no result") else row.carried_fails
    return f"{words}{changed}" + (f" (else {failed})" if failed else "")
