"""The values of a parameter side by side, and ratios of two of them."""

import re
from collections.abc import Sequence

import pandas as pd

from scalesweep.analysis.factors import planned_points
from scalesweep.core.formatting import PHASES
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.drawing import Drawing, drawn, evenly, interval
from scalesweep.figures.forms import Dots
from scalesweep.figures.parameters import panels_of, plane_figures
from scalesweep.figures.theme import Axis
from scalesweep.tables.comparisons import (
    RATIO,
    REFERENCE,
    Choice,
    Comparison,
    choice_of,
    compared_parameters,
)

MAX_PARAMETERS, MAX_PANELS, MAX_ROWS, MAX_RATIOS = 4, 8, 40, 36


def comparison_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure for each parameter whose values are names or switches, without any and without a
    scale for each parameter that varies; and the ratios of two values."""
    main, grid = results.main, () if results.scale in results.leaders else results.grid
    choices = compared_parameters(results.entry) or [(name,) for name in grid]
    drawings: list[Drawing] = []
    for names in choices[:MAX_PARAMETERS]:
        for phase in main.phases if main else ():
            assert main is not None
            drawings += _side_by_side(results, main, names, phase)
            rest = [other for other in results.leaders if other not in names]
            if rows := _compared(results, main, names, phase):
                drawings += _ratios(results, main, ", ".join(names), phase, rows, rest)
    return drawings


def _side_by_side(
    results: ExperimentResults, main: Measure, names: Choice, phase: str
) -> list[Drawing]:
    """The main metric by the values of a choice, apart for points that agree in all else."""
    rest = [other for other in results.leaders if other not in names]
    groups: dict[Key, list[Row]] = {}
    for row in results.points:
        source = row["source"] or next(iter(results.sources), "")
        if main.value(row, "mean", phase) is not None or not row["repeats"]:
            groups.setdefault((*results.key(row, rest), source), []).append(row)
    order = [*dict.fromkeys(choice_of(names, point) for point in planned_points(results.entry))]
    shown: dict[str, list[Row]] = {}
    for (*_, source), rows in groups.items():
        if len(rows) > 1 and any(row["repeats"] for row in rows):
            held = [results.describe(rows[0], rest)] if rest else []
            title = ", ".join(held + ([source] if len(results.sources) > 1 else []))
            shown[title] = sorted(rows, key=lambda row: order.index(choice_of(names, row)))
    kept = {title: evenly(rows, MAX_ROWS) for title, rows in [*shown.items()][:MAX_PANELS]}
    panels = panels_of(results, names[0], phase, kept) if kept else []
    name = ", ".join(names)
    what = f"{main.label.lower()} by {name}{_phase_words(main, phase)}"
    note = "Each panel has its own scale. Lines: 95 % intervals, ± std of a single repeat."
    left_out = sum(map(len, shown.values())) - sum(len(panel.frame) for panel in panels)
    return drawn(results, f"compare-{_file_part(name)}-{phase}", what, note, panels, left_out,
                 columns=min(2, len(panels)))  # fmt: skip


def _file_part(name: str) -> str:
    return re.sub(r"\W", "-", name, flags=re.ASCII)


def _phase_words(main: Measure, phase: str) -> str:
    return f", {PHASES[phase]}" if len(main.phases) > 1 else ""


def _compared(
    results: ExperimentResults, main: Measure, names: Choice, phase: str
) -> list[Comparison]:
    """Rows of the table of comparisons, if one value is compared with another at several points."""
    rows = [
        row for row in results.of(Comparison)
        if (row.parameter, row.phase, row.metric) == (", ".join(names), phase, main.metric)
        and row.against == REFERENCE and row.statistic is None and row.quantity == RATIO
    ]  # fmt: skip
    alone = len({row.value for row in rows}) == 1
    return rows if alone and len(names) < len(results.leaders) else []


def _ratios(
    results: ExperimentResults,
    main: Measure,
    name: str,
    phase: str,
    rows: Sequence[Comparison],
    rest: Sequence[str],
) -> list[Drawing]:
    """Ratio of one value over another with its interval, a line per point of the rest."""
    known = [row for row in rows if row.ratio]
    over = f"{name.rpartition('.')[2]} {rows[0].value} over {rows[0].base_value}"
    several = len(results.sources) > 1
    frame = pd.DataFrame(
        {
            "label": results.describe(row.point, rest) + (f" ({row.source})" if several else ""),
            **interval(row.ratio),
        }
        for row in known[:MAX_RATIOS]
    )
    axis = Axis(f"Ratio, {over}", marks={"no difference": 1.0})
    what = f"{main.label.lower()}, {over}{_phase_words(main, phase)}"
    note = "Lines: 95 % intervals of the ratio."
    return drawn(results, f"ratio-{_file_part(name)}-{phase}", what, note,
                 [Dots(frame, axis)] if len(frame) else [], len(known) - MAX_RATIOS)  # fmt: skip


FIGURES = (plane_figures, comparison_figures)
