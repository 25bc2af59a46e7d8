"""What a finding is: data, and a rule that says it in one sentence by a template of its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scalesweep.analysis.multiple import OTHERS
from scalesweep.core.formatting import finite, percent, scaled_unit, with_interval
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.table.declared import DeclaredRow
from scalesweep.table.declared import Estimate as TableEstimate

# States, as the page, the tables and the docs name them: a claim that stands, one that does not,
# what needs attention, and what claims nothing.
CLEAR, OPEN, ATTENTION, NOTE = "clear", "open", "attention", "note"
# Nothing is said, but it was looked for: the claims count (``findings.family``).
SILENT = "silent"
STATES = (CLEAR, OPEN, ATTENTION, NOTE)
# Flags: what a reader is to know of the runs behind a sentence. A source that is not "measured" is
# a flag by its own name.
DISTURBED, DISAGREE, HOLES = "disturbed runs", "ranks disagree", "some runs failed"
# What would make a claim clear: words of several aspects.
REPEAT = {OPEN: "add repeats: `repeats` in the campaign; those that are done stay"}
SAME, VARY = "identical repeats", "find out why repeats give the same number: more would too"


@dataclass(frozen=True)
class Number:
    """A number that a sentence states, in the ``unit`` of its table (``"1"``: a ratio or count).

    ``low`` and ``high`` bound the interval that decides; None where it has none.
    """

    name: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None

    def __format__(self, spec: str) -> str:
        """As a template writes it: ``{x}`` with its unit, ``{x:%}`` as a share, ``{x:x}`` as
        ``1.4 [1.3, 1.5] times``."""
        if spec == "%":
            return percent(self.value, self.low, self.high)
        if spec == "x":
            return with_interval(self.value, self.low, self.high, "times")
        if isinstance(self.value, int):
            return f"{self.value:,}" + ("" if self.unit == "1" else f" {self.unit}")
        factor, unit = scaled_unit(self.unit, self.value or 0.0)
        value, low, high = (
            None if end is None else factor * end for end in (self.value, self.low, self.high)
        )
        return with_interval(value, low, high, "" if unit == "1" else unit)


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


def counts_of(**counts: Any) -> tuple[Number, ...]:
    """Counts and shares as numbers of a sentence."""
    return tuple(number_of(name, value, "1") for name, value in counts.items())


def estimate_of(name: str, estimate: TableEstimate, unit: str) -> Number:
    """An estimate of a declared table as a number of a sentence."""
    return number_of(name, estimate.value, unit, estimate.low, estimate.high)


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
    """What a rule has found of an experiment.

    ``state``: CLEAR if its claims are to stand, OPEN if they cannot, ATTENTION, NOTE, or SILENT.
    CLEAR becomes OPEN where they do not stand among all claims of the experiment
    (``findings.family``). ``subject``: whom or what it is about, ``words`` other words of the
    template, ``numbers`` what it states. ``reason``: why it is open. ``next``: what to do.
    ``evidence``: the ``table``, and the ``key`` of a row in it.
    ``find`` fills in ``sentence`` and ``next`` by the rule's templates.
    """

    experiment: str
    rule: str
    state: str
    sentence: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    subject: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    flags: tuple[str, ...] = ()
    next: str = ""
    p: float | None = None


@dataclass(frozen=True)
class Rule:
    """A rule: what finds, and how it is said in each state.

    ``says``: by state a template (OPEN without one has that of CLEAR), ``next``: by state what to
    do, both of ``{subject}``, the names of its ``numbers`` (``Number.__format__``) and ``words``.
    ``part``: the part of all false clear sentences that its claims are judged in. ``find`` is None
    if another rule's function makes its findings.
    """

    name: str
    find: Callable[[ExperimentResults], list[Finding]] | None
    says: Mapping[str, str] = field(default_factory=dict)
    next: Mapping[str, str] = field(default_factory=dict)
    part: str = OTHERS

    def say(self, finding: Finding) -> Finding:
        """The finding with its sentence and what to do next."""
        known = {
            **finding.words,
            **{stated.name: stated for stated in finding.numbers},
            "subject": finding.subject,
        }
        template = self.says.get(finding.state) or self.says.get(CLEAR, "")
        said = _filled(template, known) if template else finding.sentence
        then = finding.next or self.next.get(finding.state, "").format_map(known)
        if then == REPEAT[OPEN] and "imported" in finding.flags:
            then = "import more repeats of each point"
        return replace(finding, sentence=said, next=then, words={})


def _filled(template: str, known: Mapping[str, Any]) -> str:
    """A template filled in; what begins with an empty subject begins with what follows it."""
    text = template.format_map(known).lstrip(" :,;")
    keep = bool(known["subject"]) and template.startswith("{subject}")
    return text if keep else text[:1].upper() + text[1:]


def evidence_of(results: ExperimentResults, table: str, row: Row) -> dict[str, Any]:
    """The row of a table that a sentence rests on."""
    key = {name: row.get(name) for name in results.axes} | {"source": row.get("source")}
    return {"experiment": results.name, "table": table, "key": key}


def declared_evidence(results: ExperimentResults, row: DeclaredRow) -> dict[str, Any]:
    """The row of a declared table that a sentence rests on."""
    return evidence_of(results, row.TABLE, {**row.point, "source": getattr(row, "source", None)})
