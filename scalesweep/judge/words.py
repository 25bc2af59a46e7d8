"""A verdict in words, and tables of verdicts: one form for history, A/B and comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.core.formatting import counted, finite, listed, number, percent, text_of
from scalesweep.experiment.cells import Text, headings, number_cell, table
from scalesweep.judge.change import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    TOO_EARLY,
    VERDICTS,
    Change,
)
from scalesweep.judge.facts import Difference


def ratio_words(change: Any) -> str:
    """How much new differs from base: ``+10.2 [8.1, 12.3] %``; of a Change or a row of ratios."""
    if not finite(change.ratio):
        return "–"
    ends = [end - 1 if finite(end) else None for end in (change.low, change.high)]
    text = percent(change.ratio - 1, *ends)
    return text if text.startswith("-") else f"+{text}"


def sentence(what: str, change: Change, since: str = "") -> str:
    """What a comparison shows of ``what``, without its first word, which is the verdict."""
    if change.verdict == TOO_EARLY:
        return f"{what}: {change.reason}."
    return f"{what} {ratio_words(change)}{f' since {since}' if since else ''}."


def why(change: Change, margin: float, others: Sequence[Difference] = ()) -> str:
    """What a reader needs besides: what else changed, or what would settle it; may be empty."""
    if change.verdict == CONFOUNDED:
        return f"Not attributable to the commit: {change.reason}."
    if change.verdict == NO_CHANGE:
        return f"The interval lies within {percent(margin)}."
    if change.verdict != INCONCLUSIVE:
        return f"{listed([str(other) for other in others])} changed too." if others else ""
    reason = f"{change.reason[:1].upper()}{change.reason[1:]}. " if change.reason else ""
    if change.needed:
        return f"{reason}{counted(change.needed, 'more pair')} would probably settle it."
    return reason.strip()


def verdict_cell(verdict: str, reason: str = "") -> Text:
    """A verdict with its colour, sorted by how grave it is."""
    order = str(VERDICTS.index(verdict)) if verdict in VERDICTS else verdict
    kinds = {REGRESSION: "bad", IMPROVEMENT: "good"}
    return Text(f"{verdict}: {reason}" if reason else verdict, order, kinds.get(verdict, ""))


def p_cell(p: float) -> Text:
    """A p value after a correction; a dash if there is none."""
    return number_cell(p, "–" if not finite(p) else "< 0.0001" if p < 0.0001 else number(p, 2))


def page_table(
    label: str, columns: Mapping[str, Sequence[Any]], of: int = 0, more: tuple[str, str] = ("", "")
) -> dict[str, Any]:
    """A table of a page by its columns: cells, numbers or text; ``of`` and ``more`` as in
    ``cells.table``."""
    cells = {
        name: [
            value if isinstance(value, Text)
            else number_cell(value, text_of(value)) if finite(value) else Text(text_of(value))
            for value in values
        ]
        for name, values in columns.items()
    }  # fmt: skip
    numbers = [name for name, of_it in cells.items() if {cell.kind for cell in of_it} == {"num"}]
    rows = [*zip(*cells.values(), strict=True)]
    return table(label, headings(*cells, numbers=numbers), rows, of, more)
