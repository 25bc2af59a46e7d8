"""Layouts on the page: the best of each scale on the first screen, and a table of all that ran."""

from collections.abc import Callable, Sequence
from typing import Any

from scalesweep.aspects.layouts.table import (
    BEST,
    BestLayout,
    LayoutPoint,
    best_layouts,
    layouts_that_ran,
)
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import as_given, number, percent, with_interval
from scalesweep.experiment.cells import Text, headings, table
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Shown, Table, declared_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import CLEAR, Finding
from scalesweep.table.declared import numbers_of


def layout_table(results: ExperimentResults, limit: int) -> Table | None:
    """Every layout that ran, the best of each scale first; None where this is no such study."""
    main, ran = results.main, layouts_that_ran(results)
    if main is None or not ran:
        return None
    best = next(row for rows in best_layouts(results).values() for row in rows)
    columns: list[Shown] = [
        ("Layout", "layout", lambda row: row.layout),
        (main.axis_label, "value", lambda row: as_given(row.value * main.factor)),
        ("Share of the best", "share", lambda row: percent(row.share)),
    ]
    for metric, name in ((best.utilisation_metric, "utilisation"), (best.memory_metric, "memory")):
        if metric is not None:
            columns.append((results.measures[metric].axis_label, name, _of(results, metric, name)))
    if best.memory_metric is not None:
        columns.append(("On the front", "front", lambda row: _YES.get(row.front, "–")))
    return declared_table(results, ran, columns, limit)


_YES = {True: "yes", False: "no"}


def _of(results: ExperimentResults, metric: str, name: str) -> Callable[[LayoutPoint], str]:
    return lambda row: measured_text(results.measures[metric], getattr(row, name))


_NOTE = (
    "Layouts compare at one scale, with what is computed held. Share of the best: of the best "
    "layout of the scale. On the front: no other layout of its scale is better with less memory."
)
SECTION = Section("Layouts", layout_table, lambda _results: [_NOTE])


def measured_text(measure: Measure, value: float | None) -> str:
    """A value of another metric without its unit; a ratio as per cent."""
    if value is None or not measure.unit:
        return percent(value)
    return number(value * measure.factor)


_LEADS = (
    "Clear: the best is told from every other layout (imported repeats are taken for jobs of their "
    "own). Leads are as measured, and the choice of the best raises them."
)
MAX_LINES = 40


def layout_card(results: ExperimentResults, findings: Sequence[Finding]) -> dict[str, Any] | None:
    """The best layouts of each scale on the first screen, as a ``table`` with a ``note``; None
    where the experiment is no study of layouts."""
    rows = [row for of in best_layouts(results).values() for row in of]
    main = results.main
    if not rows or main is None:
        return None
    evidence = [f.evidence for f in findings if f.rule == BEST and f.state == CLEAR]
    clear = {(of["setting"], of["scale"]) for of in evidence}
    shares = [results.measures[name] for name in _metrics(rows[0]) if name]
    settings = ["Setting"] if any(row.setting for row in rows) else []
    numbers = [results.scale, main.axis_label, *(measure.axis_label for measure in shares)]
    numbers += ["Ahead of the next", "Median / best"]
    words = [*settings, results.scale, "Best layout", *numbers[1:], "Failed"]
    head = headings(*words, numbers=numbers)
    lines = [
        [*([row.setting] if settings else []),
         *_line(row, main, shares, (row.setting, row.scale) in clear)]
        for row in rows[:MAX_LINES]
    ]  # fmt: skip
    cells = [[Text(cell, None, of.kind) for cell, of in zip(line, head, strict=True)]
             for line in lines]  # fmt: skip
    more = ("line", f"{BestLayout.TABLE}.csv")
    shown = table(f"Best layouts of {results.title}", head, cells, len(rows), more)
    return {"table": shown, "note": _LEADS}


def _metrics(row: BestLayout) -> dict[str | None, float | None]:
    return {row.utilisation_metric: row.utilisation, row.memory_metric: row.memory}


def _line(row: BestLayout, main: Measure, shares: Sequence[Measure], clear: bool) -> list[str]:
    failed = f"{row.failed:,} of {row.tried:,}" if row.failed else "–"
    if row.causes and Cause.NOT_STATED not in row.causes:
        failed += f" ({row.causes})"
    if row.layout is None:
        return [f"{row.scale:,}", "none ran", *["–"] * (len(shares) + 3), failed]
    if row.runs_failed:
        runs = f"{row.runs_failed:,} of {row.runs_failed + row.repeats:,} runs"
        failed = "; ".join(part for part in (failed, f"of the best {runs}") if part != "–")
    ahead = percent(*numbers_of(row.ahead and row.ahead.less(1))) + (", clear" if clear else "")
    return [
        f"{row.scale:,}", row.layout, with_interval(*numbers_of(row.value, main.factor)),
        *(measured_text(measure, _metrics(row)[measure.metric]) for measure in shares),
        ahead if row.next_layout else "no other ran",
        percent(row.median) if row.ran > 1 else "–", failed,
    ]  # fmt: skip
