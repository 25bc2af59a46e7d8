"""Findings on counts that were not measured: what they would give, and how far that holds."""

from statistics import median

from scalesweep.analysis.prediction.models import words_of
from scalesweep.aspects.prediction.forecasts import Scored
from scalesweep.aspects.prediction.node_hours import best_for_a_node_hour
from scalesweep.aspects.prediction.table import Prediction, known, of_series
from scalesweep.aspects.prediction.target_findings import predicted_target_times
from scalesweep.aspects.prediction.words import predicted_head
from scalesweep.core.formatting import PHASES, counted, finite, number, percent, with_interval
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.findings.base import NOTE, Finding, Rule, declared_evidence
from scalesweep.table.declared import numbers_of

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
    if results.tables.get(Prediction.TABLE) is None:
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
        refused = [row for row in rows if row.refused]
        if refused:
            text = f"nothing is predicted: {refused[-1].refused}"
            if good:
                text = f"no more is predicted: {refused[-1].refused}"
            findings.append(_finding(results, series, refused[-1], phase, text))
    return [*findings, *_scored(results)]


def _finding(
    results: ExperimentResults, series: Series, row: Prediction, phase: str, text: str
) -> Finding:
    epochs = PHASES[phase] if phase != "run" else ""
    columns = ("value", "low", "high", "efficiency", "below_target", "trusted_to", "largest")
    evidence = declared_evidence(results, row, columns)
    head = predicted_head(row.based_on, series.label, epochs)
    return Finding(results.name, RULE, NOTE, f"{head}: {text}.", evidence)


def _value(results: ExperimentResults, row: Prediction) -> str:
    """``at 1,024 ranks 14,800 samples/s [11,900, 17,300], efficiency ...``."""
    main = results.main
    assert main is not None
    count = results.scaled(results.scale_of(row.point))
    value = with_interval(*numbers_of(row.value, main.factor), main.unit)
    efficiency = percent(*numbers_of(row.efficiency))
    parts = [
        f"at {count} {value}, efficiency {efficiency} relative to "
        f"{results.scaled(row.smallest or 0)}",
        f"largest measured: {row.largest:,}",
        f"do not trust beyond {row.trusted_to:,}",
    ]
    share = row.term_share or 0.0
    if share >= NOTABLE:
        what = words_of(str(row.term))
        parts.append(f"most of what grows there: {what}, {100 * share:.0f} % of the cost")
    else:
        parts.append(f"no term that grows makes {100 * NOTABLE:.0f} % of the cost there")
    if row.part_share is not None and row.part_share < ALL_BUT:
        parts.append(
            f"of the parts of a step {row.part} grows most, to {100 * row.part_share:.0f} % of it"
        )
    if row.forecasts:
        held = f"{row.forecasts_within} of {row.forecasts}"
        parts.append(f"{held} rolling forecasts of measured counts held")
    return "; ".join(parts)


def _knee(results: ExperimentResults, row: Prediction) -> str:
    """``efficiency falls below 80 % at 190 ranks [120, 260]``; empty where it does not."""
    at, low, high = numbers_of(row.below_target)
    if low is None:
        return ""
    if not finite(at):
        return (
            f"efficiency may fall below {100 * results.target:g} % from "
            f"{results.scaled(round(low))} on, and is expected to hold up to {row.trusted_to:,}"
        )
    end = f"beyond {row.trusted_to:,}" if high is None else number(round(high))
    count = results.scaled(round(at))
    target = f"{100 * results.target:g} %"
    return f"efficiency falls below {target} at {count} [{number(round(low))}, {end}]"


def _scored(results: ExperimentResults) -> list[Finding]:
    """How many kept predictions held, once their points were measured."""
    rows = results.of(Scored)
    if not rows:
        return []
    hits = sum(row.hit for row in rows)
    typical = median(abs(row.error) for row in rows)
    text = (
        f"Of {counted(len(rows), 'prediction')} whose points have been measured since, {hits} "
        f"{'was' if hits == 1 else 'were'} within the 95 % interval; their error is "
        f"{percent(typical)} in the median."
    )
    evidence = declared_evidence(results, rows[-1], ("hit", "error"))
    return [Finding(results.name, SCORED, NOTE, text, evidence)]


_FIGURES = ("scaling", "overview-")
RULES = (
    Rule(RULE, prediction, figures=_FIGURES, on_main=True),
    Rule(SCORED, None, figures=_FIGURES, on_main=True),
    Rule("node-hours", best_for_a_node_hour, figures=_FIGURES),
    Rule("predicted target", predicted_target_times, figures=("accuracy-",)),
)
