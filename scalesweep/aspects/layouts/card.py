"""The best layouts of a study on the first screen: a small table, a line for each scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from scalesweep.aspects.layouts.findings import BEST
from scalesweep.aspects.layouts.table import BestLayout
from scalesweep.aspects.layouts.words import best_layouts, lead_note, measured_text
from scalesweep.core.causes import Cause
from scalesweep.core.formatting import percent, with_interval
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, Finding
from scalesweep.table.declared import numbers_of

MAX_LINES = 40


@dataclass(frozen=True)
class LayoutCard:
    """``lines[line][column]``; ``numbers``: headings of columns of numbers."""

    head: Sequence[str]
    numbers: Sequence[str]
    lines: Sequence[Sequence[str]]
    note: str


def layout_card(results: ExperimentResults, findings: Sequence[Finding]) -> LayoutCard | None:
    """What the first screen says of layouts; None where the experiment is no study of them."""
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
    head = [*settings, results.scale, "Best layout", *numbers[1:], "Failed"]
    lines = [
        [*([row.setting] if settings else []),
         *_line(row, main, shares, (row.setting, row.scale) in clear)]
        for row in rows[:MAX_LINES]
    ]  # fmt: skip
    more = len(rows) - MAX_LINES
    note = f" The table best_layouts has {more} more lines." if more > 0 else ""
    return LayoutCard(head, numbers, lines, lead_note(rows) + note)


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
