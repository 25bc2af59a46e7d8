"""Findings on counts that were not measured."""

from scalesweep.aspects.prediction.table import Prediction, known, of_series
from scalesweep.core.formatting import PHASES
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import (
    NOTE,
    Finding,
    Number,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import numbers_of

RULE, REFUSED = "prediction", "not predicted"
MAX_SERIES = 4


def prediction(results: ExperimentResults) -> list[Finding]:
    """For each series what its largest predicted count would give, and the last refusal with what
    to measure."""
    findings: list[Finding] = []
    main = results.main
    if main is None:
        return findings
    for series in results.series[:MAX_SERIES]:
        rows = of_series(results, series, main.metric, main.steady_phase)
        good, refused = known(rows), [row for row in rows if row.refused]
        findings += [_finding(results, main, series, row) for row in (*good[-1:], *refused[-1:])]
    return findings


def _finding(results: ExperimentResults, main: Measure, series: Series, row: Prediction) -> Finding:
    phase = PHASES[row.phase] if row.phase != "run" else ""
    about = ", ".join(part for part in (series.label, phase) if part)
    value, low, high = numbers_of(row.value, main.factor)
    evidence = declared_evidence(results, row)
    evidence["key"]["source"] = row.based_on
    numbers: tuple[Number, ...] = ()
    if row.value and row.efficiency:
        numbers = (
            number_of("value", value, main.unit, low, high),
            estimate_of("efficiency", row.efficiency, "1"),
        )
    return Finding(
        results.name, REFUSED if row.refused else RULE, NOTE,
        subject=results.scaled(results.scale_of(row.point)),
        words={"about": f" ({about})" if about else "", "why": row.refused or ""},
        numbers=numbers, evidence=evidence,
    )  # fmt: skip


RULES = (
    Rule(
        RULE, prediction,
        says={NOTE: "Predicted{about}: {subject} give {value}, an efficiency of {efficiency:%}."},
        next={NOTE: "measure the next doubling before you rely on it"},
    ),
    Rule(
        REFUSED, None,
        says={NOTE: "Not predicted at {subject}{about}: {why}."},
    ),
)  # fmt: skip
