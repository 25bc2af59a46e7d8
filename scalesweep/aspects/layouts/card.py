"""The layouts of a study on the first screen: a small table, a line for each scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.aspects.layouts.findings import BEST
from scalesweep.aspects.layouts.study import LayoutStudy, study_of
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import (
    ahead_of,
    best_layouts,
    loss_of,
    measured_text,
    without_repeats,
)
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import percent, text_of, with_interval
from scalesweep.core.layouts import LAYOUT
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, Finding
from scalesweep.table.declared import numbers_of

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
    evidence = [f.evidence for f in findings if f.rule == BEST and f.state == CLEAR]
    clear = {(of["setting"], of["scale"]) for of in evidence}
    rows = [row for of in settings.values() for row in of]
    choices = [*study.roles, *study.others]
    if len(choices) > MAX_CHOICES or LAYOUT in study.others:
        choices = []  # one text has room for more
    shares = [name for name in (rows[0].utilisation_metric, rows[0].memory_metric) if name]
    columns = [
        CardColumn(results.scale, True),
        *([CardColumn(name, True) for name in choices] or [CardColumn("Best layout")]),
        CardColumn(main.axis_label, True),
        *(CardColumn(results.measures[name].axis_label, True) for name in shares),
        CardColumn("Ahead of the next", True), CardColumn("Median / best", True),
        CardColumn("Best layout of the scale before"), CardColumn("Failed"),
    ]  # fmt: skip
    lines = {
        setting: [
            _line(results, row, study, choices, (setting, row.scale) in clear) for row in of
        ]
        for setting, of in settings.items()
    }  # fmt: skip
    note = (
        "The first layouts have one result each: no lead is confirmed, and a part of each is due "
        "to the choice of the best of many."
        if without_repeats(rows)
        else "Leads and losses are of repeats that had no part in the choice of the best. Clear: "
        "the best is told from every other layout"
        + (", if imported repeats were jobs of their own." if rows[0].source == "imported" else ".")
    )
    if (more := len(settings) - MAX_SETTINGS) > 0:
        note += f" The table best_layouts has {more} more settings."
    return LayoutCard(columns, [*lines.items()][:MAX_SETTINGS], note)


def _line(
    results: ExperimentResults,
    row: BestLayout,
    study: LayoutStudy,
    choices: Sequence[str],
    clear: bool,
) -> list[str]:
    main = results.main
    failed = f"{row.failed:,} of {row.tried:,}" if row.failed else "–"
    if row.causes and Cause.NOT_STATED not in row.causes:
        failed += f" ({row.causes})"
    metrics = {row.utilisation_metric: row.utilisation, row.memory_metric: row.memory}
    shares = [measured_text(results.measures[name], v) for name, v in metrics.items() if name]
    if row.layout is None or main is None:
        dashes = ["–"] * (len(shares) + 4)
        return [f"{row.scale:,}", *(["–"] * len(choices) or ["none ran"]), *dashes, failed]
    if row.runs_failed:
        runs = f"{row.runs_failed:,} of {row.runs_failed + row.repeats:,} runs"
        failed = "; ".join(part for part in (failed, f"of the best {runs}") if part != "–")
    sizes = study.sizes(row.point) | {name: row.point[name] for name in study.others}
    ahead = percent(*ahead_of(row)) + (", clear" if clear else "")
    return [
        f"{row.scale:,}", *([text_of(sizes[name]) for name in choices] or [row.layout]),
        with_interval(*numbers_of(row.value, main.factor)), *shares,
        ahead if row.next_layout else "no other ran",
        percent(row.median) if row.ran > 1 else "–", _carried(row), failed,
    ]  # fmt: skip


def _carried(row: BestLayout) -> str:
    if row.carried_from is None:
        return "–"
    if row.carried_loss is None:
        return f"has no result ({row.carried_fails or 'none of its axes'})"
    words = "still the best" if row.carried_loss == 0 else f"loses {percent(*loss_of(row))}"
    changed = f" with {row.carried_changes}" if row.carried_changes else ""
    failed = "" if row.carried_fails in ("", "not planned", "no result") else row.carried_fails
    return f"{words}{changed}" + (f" (else {failed})" if failed else "")
