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


def prediction(study: ExperimentResults) -> list[Finding]:
    """For each series what its largest predicted count would give, and where efficiency falls.

    In the phase that runs are compared in; a refusal with what to measure is a note too.
    """
    if study.main is None:
        return []
    if study.tables.get("prediction") is None:
        return _scored(study)
    phase = study.main.steady_phase
    found = []
    for series in study.series[:MAX_SERIES]:
        rows = of_series(study, series, study.main.metric, phase)
        good = known(rows)
        if good:
            found.append(_finding(study, series, good[-1], phase, _value(study, good[-1])))
            if knee := _knee(study, good[-1]):
                found.append(_finding(study, series, good[-1], phase, knee))
        refused = [one for one in rows if one.refused]
        if refused:
            text = f"nothing is predicted: {refused[-1].refused}"
            if good:
                text = f"no more is predicted: {refused[-1].refused}"
            found.append(_finding(study, series, refused[-1], phase, text))
    return found + _scored(study)


def _finding(
    study: ExperimentResults, series: Series, one: Predicted, phase: str, text: str
) -> Finding:
    epochs = PHASES[phase] if phase != "run" else ""
    names = ("value", "low", "high", "efficiency", "below_80", "trusted_to", "largest")
    columns = [prediction_column(name, study.axes) for name in names]
    evidence = evidence_of(study, "prediction", one.row, columns)
    head = predicted_head(str(one.get("based_on")), series.label, epochs)
    return Finding(study.name, RULE, NOTE, f"{head}: {text}.", evidence)


def predicted_head(based_on: str, *what: str) -> str:
    """``Predicted from simulated points for batch_size 4, later epochs``: how sentences begin."""
    source = "" if based_on == "measured" else f" from {based_on} points"
    about = ", ".join(one for one in what if one)
    return f"Predicted{source}{f' for {about}' if about else ''}"


def _value(study: ExperimentResults, one: Predicted) -> str:
    """``at 1,024 ranks 14,800 samples/s [11,900, 17,300], efficiency ...``."""
    main = study.main
    assert main is not None
    value, low, high = (
        None if (v := one.number(name)) is None else v * main.factor
        for name in ("value", "low", "high")
    )
    efficiency = percent(*(one.number(f"efficiency{end}") for end in ("", "_low", "_high")))
    parts = [
        f"at {study.scaled(study.scale_of(one.row))} {with_interval(value, low, high, main.unit)}, "
        f"efficiency {efficiency} relative to {study.scaled(int(one.get('smallest')))}",
        f"largest measured: {int(one.get('largest')):,}",
        f"do not trust beyond {int(one.get('trusted_to')):,}",
    ]
    share = one.number("term_share") or 0.0
    if share >= NOTABLE:
        what = words_of(str(one.get("term")))
        parts.append(f"most of what grows there: {what}, {100 * share:.0f} % of the cost")
    else:
        parts.append(f"no term that grows makes {100 * NOTABLE:.0f} % of the cost there")
    of_part = one.number("part_share")
    if of_part is not None and of_part < ALL_BUT:
        parts.append(
            f"of the parts of a step {one.get('part')} grows most, to {100 * of_part:.0f} % of it"
        )
    if one.get("forecasts"):
        held = f"{one.get('forecasts_within')} of {one.get('forecasts')}"
        parts.append(f"{held} rolling forecasts of measured counts held")
    return "; ".join(parts)


def _knee(study: ExperimentResults, one: Predicted) -> str:
    """``efficiency falls below 80 % at 190 ranks [120, 260]``; empty where it does not."""
    at, low, high = (one.number(f"below_80{end}") for end in ("", "_low", "_high"))
    if low is None:
        return ""
    limit = f"beyond {int(one.get('trusted_to')):,}"
    end = limit if high is None else number(round(high))
    if at is None:
        return (
            f"efficiency may fall below 80 % from {study.scaled(round(low))} on, and is expected "
            f"to hold up to {int(one.get('trusted_to')):,}"
        )
    return f"efficiency falls below 80 % at {study.scaled(round(at))} [{number(round(low))}, {end}]"


def _scored(study: ExperimentResults) -> list[Finding]:
    """How many kept predictions held, once their points were measured."""
    rows = study.rows("forecasts", None)
    if not rows:
        return []
    hit, error = (prediction_column(name, study.axes) for name in ("hit", "error"))
    hits = sum(bool(row[hit]) for row in rows)
    typical = median(abs(float(row[error])) for row in rows)
    text = (
        f"Of {counted(len(rows), 'prediction')} whose points have been measured since, {hits} "
        f"{'was' if hits == 1 else 'were'} within the 95 % interval; their error is "
        f"{percent(typical)} in the median."
    )
    evidence = evidence_of(study, "forecasts", rows[-1], [hit, error])
    return [Finding(study.name, SCORED, NOTE, text, evidence)]
