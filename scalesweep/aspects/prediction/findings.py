"""Findings on counts that were not measured, and how past predictions did."""

from statistics import median

from scalesweep.aspects.prediction.forecasts import Scored
from scalesweep.aspects.prediction.table import Prediction, known, of_series
from scalesweep.core.formatting import PHASES, counted, percent, with_interval
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence
from scalesweep.table.declared import numbers_of

RULE = "prediction"
SCORED = "forecasts"  # how kept predictions did
MAX_SERIES = 4
_COLUMNS = ("value", "low", "high", "efficiency", "trusted_to", "largest")


def prediction(results: ExperimentResults) -> list[Finding]:
    """For each series what its largest predicted count would give; a refusal with what to measure
    is a note too. And how many kept predictions held."""
    if results.main is None:
        return []
    findings = []
    for series in results.series[:MAX_SERIES]:
        rows = of_series(results, series, results.main.metric, results.main.steady_phase)
        refused, good = [row for row in rows if row.refused], known(rows)
        if good:
            findings.append(_finding(results, series, good[-1], _value(results, good[-1])))
        if refused:
            text = f"nothing is predicted: {refused[-1].refused}"
            findings.append(_finding(results, series, refused[-1], text))
    return [*findings, *_scored(results)]


def _finding(results: ExperimentResults, series: Series, row: Prediction, text: str) -> Finding:
    source = "" if row.based_on == "measured" else f" from {row.based_on} points"
    about = [part for part in (series.label, PHASES[row.phase] * (row.phase != "run")) if part]
    head = f"Predicted{source}" + (f" for {', '.join(about)}" if about else "")
    evidence = declared_evidence(results, row, _COLUMNS)
    return Finding(results.name, RULE, NOTE, f"{head}: {text}.", evidence)


def _value(results: ExperimentResults, row: Prediction) -> str:
    """``1,024 ranks give 14,800 samples/s [11,900, 17,300], an efficiency of ...``."""
    main = results.main
    assert main is not None
    value = with_interval(*numbers_of(row.value, main.factor), main.unit)
    count = results.scaled(results.scale_of(row.point))
    return f"{count} give {value}, an efficiency of {percent(*numbers_of(row.efficiency))}"


def _scored(results: ExperimentResults) -> list[Finding]:
    """How many kept predictions held, once their points were measured."""
    rows = results.of(Scored)
    if not rows:
        return []
    hits, error = sum(row.hit for row in rows), median(abs(row.error) for row in rows)
    text = (
        f"Of {counted(len(rows), 'prediction')} measured since, {hits} lay within the 95 % "
        f"interval; the median error is {percent(error)}."
    )
    evidence = declared_evidence(results, rows[-1], ("hit", "error"))
    return [Finding(results.name, SCORED, NOTE, text, evidence)]


_FIGURES = ("scaling", "overview-")
RULES = (
    Rule(RULE, prediction, figures=_FIGURES, on_main=True),
    Rule(SCORED, None, figures=_FIGURES, on_main=True),
)
