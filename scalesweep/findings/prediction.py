"""Findings on counts that were not measured: what they would give, and how far that holds."""

from statistics import median

from scalesweep.analysis.prediction.models import words_of
from scalesweep.core.formatting import PHASES, counted, number, percent, with_interval
from scalesweep.experiment.predictions import Predicted, known, of_series
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import NOTE, Finding, evidence_of
from scalesweep.tables.prediction import prediction_column

RULE = "prediction"
SCORED = "forecasts"  # how kept predictions did
# A growing term with a smaller share of the cost dominates nothing.
NOTABLE = 0.05
# A part that is nearly the whole step says nothing of what grows.
ALL_BUT = 0.95
MAX_SERIES = 4


def prediction(results: ExperimentResults) -> list[Finding]:
    """For each series what its largest predicted count would give, and where efficiency falls.

    In the phase that runs are compared in; a refusal with what to measure is a note too.
    """
    if results.main is None:
        return []
    if results.tables.get("prediction") is None:
        return _scored(results)
    phase = results.main.steady_phase
    findings = []
    for series in results.series[:MAX_SERIES]:
        rows = of_series(results, series, results.main.metric, phase)
        good = known(rows)
        if good:
            findings.append(_finding(results, series, good[-1], phase, _value(results, good[-1])))
            if knee := _knee(results, good[-1]):
                findings.append(_finding(results, series, good[-1], phase, knee))
        refused = [prediction_ for prediction_ in rows if prediction_.refused]
        if refused:
            text = f"nothing is predicted: {refused[-1].refused}"
            if good:
                text = f"no more is predicted: {refused[-1].refused}"
            findings.append(_finding(results, series, refused[-1], phase, text))
    return findings + _scored(results)


def _finding(
    results: ExperimentResults, series: Series, predicted: Predicted, phase: str, text: str
) -> Finding:
    epochs = PHASES[phase] if phase != "run" else ""
    names = ("value", "low", "high", "efficiency", "below_80", "trusted_to", "largest")
    columns = [prediction_column(name, results.axes) for name in names]
    evidence = evidence_of(results, "prediction", predicted.row, columns)
    head = predicted_head(str(predicted.get("based_on")), series.label, epochs)
    return Finding(results.name, RULE, NOTE, f"{head}: {text}.", evidence)


def predicted_head(based_on: str, *what: str) -> str:
    """``Predicted from simulated points for batch_size 4, later epochs``: how sentences begin."""
    source = "" if based_on == "measured" else f" from {based_on} points"
    about = ", ".join(part for part in what if part)
    return f"Predicted{source}{f' for {about}' if about else ''}"


def _value(results: ExperimentResults, predicted: Predicted) -> str:
    """``at 1,024 ranks 14,800 samples/s [11,900, 17,300], efficiency ...``."""
    main = results.main
    assert main is not None
    value, low, high = (
        None if (v := predicted.number(name)) is None else v * main.factor
        for name in ("value", "low", "high")
    )
    efficiency = percent(*(predicted.number(f"efficiency{end}") for end in ("", "_low", "_high")))
    parts = [
        f"at {results.scaled(results.scale_of(predicted.row))} "
        f"{with_interval(value, low, high, main.unit)}, "
        f"efficiency {efficiency} relative to {results.scaled(int(predicted.get('smallest')))}",
        f"largest measured: {int(predicted.get('largest')):,}",
        f"do not trust beyond {int(predicted.get('trusted_to')):,}",
    ]
    share = predicted.number("term_share") or 0.0
    if share >= NOTABLE:
        what = words_of(str(predicted.get("term")))
        parts.append(f"most of what grows there: {what}, {100 * share:.0f} % of the cost")
    else:
        parts.append(f"no term that grows makes {100 * NOTABLE:.0f} % of the cost there")
    of_part = predicted.number("part_share")
    if of_part is not None and of_part < ALL_BUT:
        parts.append(
            f"of the parts of a step {predicted.get('part')} grows most, "
            f"to {100 * of_part:.0f} % of it"
        )
    if predicted.get("forecasts"):
        held = f"{predicted.get('forecasts_within')} of {predicted.get('forecasts')}"
        parts.append(f"{held} rolling forecasts of measured counts held")
    return "; ".join(parts)


def _knee(results: ExperimentResults, predicted: Predicted) -> str:
    """``efficiency falls below 80 % at 190 ranks [120, 260]``; empty where it does not."""
    at, low, high = (predicted.number(f"below_80{end}") for end in ("", "_low", "_high"))
    if low is None:
        return ""
    limit = f"beyond {int(predicted.get('trusted_to')):,}"
    end = limit if high is None else number(round(high))
    if at is None:
        return (
            f"efficiency may fall below 80 % from {results.scaled(round(low))} on, and is expected "
            f"to hold up to {int(predicted.get('trusted_to')):,}"
        )
    return (
        f"efficiency falls below 80 % at {results.scaled(round(at))} [{number(round(low))}, {end}]"
    )


def _scored(results: ExperimentResults) -> list[Finding]:
    """How many kept predictions held, once their points were measured."""
    rows = results.rows("forecasts", None)
    if not rows:
        return []
    hit, error = (prediction_column(name, results.axes) for name in ("hit", "error"))
    hits = sum(bool(row[hit]) for row in rows)
    typical = median(abs(float(row[error])) for row in rows)
    text = (
        f"Of {counted(len(rows), 'prediction')} whose points have been measured since, {hits} "
        f"{'was' if hits == 1 else 'were'} within the 95 % interval; their error is "
        f"{percent(typical)} in the median."
    )
    evidence = evidence_of(results, "forecasts", rows[-1], [hit, error])
    return [Finding(results.name, SCORED, NOTE, text, evidence)]
