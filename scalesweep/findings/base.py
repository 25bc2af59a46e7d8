"""What a finding is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scalesweep.quantities import column
from scalesweep.study import Measure, Row, Study

CONFIRMED, OPEN, NOTE, WARNING = "confirmed", "open", "note", "warning"


@dataclass(frozen=True)
class Finding:
    """A sentence; ``level`` says how firm it is, ``evidence`` which rows and numbers carry it."""

    experiment: str
    rule: str
    level: str  # confirmed | open | note | warning
    text: str
    evidence: dict[str, Any] = field(default_factory=dict)


def evidence_of(study: Study, table: str, row: Row, columns: Sequence[str]) -> dict[str, Any]:
    """The row of a table and the numbers in it that a sentence rests on."""
    return {
        "experiment": study.name,
        "table": table,
        "key": {n: row.get(n) for n in study.axes} | {"source": row.get("source")},
        "numbers": {name: row.get(name) for name in columns},
    }


def columns_of(measure: Measure, phase: str) -> list[str]:
    """Columns of a metric's mean and interval."""
    return [column(measure.metric, stat, phase) for stat in ("mean", "low", "high")]


def marked(source: Any, text: str, capital: bool = True) -> str:
    """Sentences on numbers that were not measured say so first.

    ``capital`` is False where a sentence starts with a parameter's name.
    """
    text = text[:1].upper() + text[1:] if capital else text
    return text if source == "measured" else f"{str(source).capitalize()}: {text}"
