"""What a finding is."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import finite, plain
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.table.declared import DeclaredRow

# How the names of the figures begin that show what a rule speaks of, the plainest first.
_FIGURES: Mapping[str, Sequence[str]] = {
    "cache": ("scaling", "parameter", "heatmap", "groups"),
    "waiting": ("ranks-work", "ranks-epoch", "ranks-step", "scaling"),
    "drift": ("control",),
}

_ON_MAIN = frozenset(
    {
        "best",
        "threads",
        "ratio",
        "sites",
        "verdict",
        "efficiency",
        "cache",
        "prediction",
        "forecasts",
    }
)

CONFIRMED, OPEN, NOTE, WARNING = "confirmed", "open", "note", "warning"
# Nothing is said, but it was looked for: the claims count (``findings.family``).
SILENT = "silent"
# How readers are told of a level: in the page, on its cards and in the table of findings.
STATES: Mapping[str, str] = {
    CONFIRMED: "clear",
    OPEN: "not confirmed",
    NOTE: "note",
    WARNING: "attention",
}


@dataclass(frozen=True)
class Number:
    """A number that a sentence states, in the ``unit`` of its table (``"1"``: a ratio or count).

    ``low`` and ``high`` bound its 95 % interval; None where it has none.
    """

    name: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None


def number_of(name: str, value: Any, unit: str, low: Any = None, high: Any = None) -> Number:
    """A number as data; what is not finite is missing."""
    known = finite(low, high)
    return Number(
        name,
        value if finite(value) else None,
        unit,
        low if known else None,
        high if known else None,
    )


@dataclass(frozen=True)
class Claim:
    """What a sentence claims, and the p value of the test that it rests on.

    ``what`` tells it from the experiment's other claims; sentences that rest on the same test share
    one.
    """

    what: tuple[Any, ...]
    p: float


def claim_of(p: float | None, *what: Any) -> Claim:
    """A claim; what nothing tests (no p value, or NaN) is never clear."""
    return Claim(what, 1.0 if p is None or math.isnan(p) else p)


@dataclass(frozen=True)
class Finding:
    """A sentence; ``level`` says how firm it is, ``evidence`` which rows and numbers carry it.

    ``numbers``: what it states, as data. Where a rule gives none ``find`` takes those of its
    evidence (``findings.table.numbers_stated``).
    ``claims``: all that it claims, or would if it were clear. Where they do not stand among all
    claims of the experiment, ``unless`` (if empty, the sentence itself) is said instead, as not
    confirmed (``findings.family``).
    """

    experiment: str
    rule: str
    level: str  # confirmed | open | note | warning
    text: str
    evidence: dict[str, Any] = field(default_factory=dict)
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    unless: str = ""

    @property
    def state(self) -> str:
        """The level as readers are told it."""
        return STATES[self.level]

    @property
    def on_main(self) -> bool:
        """Whether it is on the experiment's main metric."""
        return self.rule in _ON_MAIN


def evidence_of(
    results: ExperimentResults, table: str, row: Row, columns: Sequence[str]
) -> dict[str, Any]:
    """The row of a table and the numbers in it that a sentence rests on."""
    return {
        "experiment": results.name,
        "table": table,
        "key": {n: row.get(n) for n in results.axes} | {"source": row.get("source")},
        "numbers": {name: row.get(name) for name in columns},
    }


def declared_evidence(
    results: ExperimentResults, row: DeclaredRow, columns: Sequence[str]
) -> dict[str, Any]:
    """The row of a declared table and the numbers in it that a sentence rests on."""
    cells = row.cells
    return {
        "experiment": results.name,
        "table": row.TABLE,
        "key": {name: row.point.get(name) for name in results.axes}
        | {"source": getattr(row, "source", None)},
        "numbers": {name: plain(cells[name]) for name in columns},
    }


@dataclass(frozen=True)
class Rule:
    """What states findings of an aspect, and the figures that show what they speak of.

    ``figures``: by the name that a finding has as its ``rule``, how the names of figures begin,
    the plainest first.
    """

    find: Callable[[ExperimentResults], list[Finding]]
    figures: Mapping[str, Sequence[str]] = field(default_factory=dict)


def one_source(results: ExperimentResults) -> list[Row]:
    """Points of one source, measured where there are any: sources do not compete."""
    chosen = "measured" if "measured" in results.sources else next(iter(results.sources), None)
    return [row for row in results.points if row.get("source") == chosen]


def point_key(results: ExperimentResults, row: Row) -> Key:
    """Point and source of a row."""
    return (*results.key(row, results.axes), row["source"])


def why_unconfirmed(why: str) -> str:
    """What a sentence says of a ratio without an interval (``analysis.stats.without_interval``)."""
    return {
        "one repeat": "a side has one repeat",
        "identical repeats": "the repeats of a side are identical, so their scatter is unknown",
    }.get(why, "there is no interval")


def from_single_runs(*alone: bool) -> str:
    """What a number without an interval is taken from, by whether each side is a single run."""
    return "from single runs" if all(alone) else "with a single run on one side"


def columns_of(measure: Measure, phase: str) -> list[str]:
    """Columns of a metric's mean and interval."""
    return [column(measure.metric, stat, phase) for stat in ("mean", "low", "high")]


def marked(source: Any, text: str, capital: bool = True) -> str:
    """Sentences on numbers that were not measured say so first.

    ``capital`` is False where a sentence starts with a parameter's name.
    """
    text = text[:1].upper() + text[1:] if capital else text
    if source in ("measured", None):  # None: of points without a result
        return text
    return f"{str(source).capitalize()}: {text}"


def figure_of(
    finding: Finding,
    figures: Mapping[str, Mapping[str, Any]],
    beginnings: Mapping[str, Sequence[str]] | None = None,
) -> str | None:
    """Which of an experiment's figures shows what a finding speaks of; None if none does.

    ``figures``: by name what each ``shows`` (``figures.style.Drawing``); ``beginnings``: those of
    the rules of aspects (``Rule.figures``).
    The one that its evidence names, else the first of those that its rule is about: of the phase
    that its numbers are of, where there are several.
    """
    there = [name for name, shows in figures.items() if _shown(finding, shows)]
    wanted = finding.evidence.get("figure")
    if wanted in there:
        return str(wanted)
    phases = {str(name).rpartition("_")[2] for name in finding.evidence.get("numbers") or {}}
    for begin in {**_FIGURES, **(beginnings or {})}.get(finding.rule, ()):
        names = [name for name in there if name.startswith(begin)]
        if names:
            return next((name for name in names if name.rpartition("-")[2] in phases), names[0])
    return None


def _shown(finding: Finding, shows: Mapping[str, Any]) -> bool:
    """Whether a figure shows the point and the parameter that a finding is on."""
    key = finding.evidence.get("key") or {}

    def same(values: Mapping[str, Any]) -> bool:
        return all(key[name] == value for name, value in values.items() if name in key)

    parameter = finding.evidence.get("parameter")
    if None not in (parameter, shows.get("parameter")) and parameter != shows["parameter"]:
        return False
    points = shows.get("points")
    return same(shows.get("where", {})) and (points is None or any(map(same, points)))
