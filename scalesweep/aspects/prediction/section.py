"""What an experiment's report says of counts that were not measured, and how past forecasts did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.aspects.prediction.forecasts import Scored
from scalesweep.aspects.prediction.table import Prediction, known
from scalesweep.core.formatting import PHASES, listed, number, percent, with_interval
from scalesweep.experiment.cells import Text, headings, number_cell, table, unbroken
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import Estimate, numbers_of


@dataclass(frozen=True)
class PredictionSection:
    """Tables for ``cells.html.j2``, None if there are no rows; and what the first leaves out."""

    predicted: dict[str, Any] | None
    refused: Sequence[str]
    forecasts: dict[str, Any] | None


def prediction_section(results: ExperimentResults, limit: int) -> PredictionSection | None:
    """The section; tables have at most ``limit`` rows. None if nothing is or was predicted."""
    rows, scored = results.of(Prediction), results.of(Scored)
    if not rows and not scored:
        return None
    return PredictionSection(
        _predicted(results, known(rows), limit),
        _refusals(results, rows),
        _forecasts(results, scored, limit),
    )


def _predicted(
    results: ExperimentResults, rows: Sequence[Prediction], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    head = _headings(
        "What", f"+{results.scale.capitalize()}", "+Predicted [95 %]", "+Efficiency [95 %]",
        "Grows with", "+Largest measured", "+Nothing beyond", "+Forecasts within",
    )  # fmt: skip
    cells = [
        [
            Text(_what(results, row)),
            _number(results.scale_of(row.point)),
            _estimate(row.value, _factor(results, row)),
            number_cell(numbers_of(row.efficiency)[0] or 0.0,
                        unbroken(percent(*numbers_of(row.efficiency)))),
            Text(str(row.law)),
            _number(row.largest or 0),
            _number(row.trusted_to or 0),
            number_cell(row.forecasts_within or 0, f"{row.forecasts_within} of {row.forecasts}"),
        ]
        for row in rows[:limit]
    ]  # fmt: skip
    label = f"Table of predictions, {results.title}"
    return table(label, head, cells, len(rows), ("prediction", "prediction.csv"))


def _headings(*names: str) -> list[Text]:
    """Headings of columns; those that begin with + are of numbers."""
    words = [unbroken(name.removeprefix("+")) for name in names]
    numbers = [word for word, name in zip(words, names, strict=True) if name.startswith("+")]
    return headings(*words, numbers=numbers)


def _number(count: int) -> Text:
    return number_cell(count, f"{count:,}")


def _estimate(value: Estimate | None, factor: float) -> Text:
    """A number whose text breaks before an interval only."""
    numbers = numbers_of(value, factor)
    return number_cell(numbers[0] or 0.0, unbroken(with_interval(*numbers)))


def _factor(results: ExperimentResults, row: Prediction | Scored) -> float:
    """Of the unit in which the page shows a metric."""
    measure = results.measures.get(row.metric)
    return measure.factor if measure else 1.0


def _what(results: ExperimentResults, row: Prediction | Scored) -> str:
    """``batch_size 4: Total throughput [samples/s], later epochs``."""
    measure = results.measures.get(row.metric)
    label, unit = (measure.label, measure.unit) if measure else (row.metric, row.unit)
    series = results.describe(row.point, results.series_names) if results.series_names else ""
    epochs = f", {PHASES[row.phase]}" if row.phase != "run" else ""
    return f"{f'{series}: ' if series else ''}{label} [{unit}]{epochs}"


def _refusals(results: ExperimentResults, rows: Sequence[Prediction]) -> list[str]:
    """Each reason once, with what it is about."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refused:
            reasons.setdefault(row.refused, []).append(_what(results, row))
    return [f"{why} ({listed(list(dict.fromkeys(whats)), 4)})" for why, whats in reasons.items()]


def _forecasts(
    results: ExperimentResults, rows: Sequence[Scored], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    head = _headings(
        "What", f"+{results.scale.capitalize()}", "Made", "+From counts to", "+Predicted [95 %]",
        "+Measured", "+Measured over predicted", "Within 95 %", "Within 90 %",
    )  # fmt: skip
    cells = [
        [
            Text(_what(results, row)),
            _number(results.scale_of(row.point)),
            Text(row.made[:10].replace("-", "\N{NON-BREAKING HYPHEN}"), row.made),
            _number(row.largest),
            _estimate(row.predicted, _factor(results, row)),
            number_cell(row.measured, number(_factor(results, row) * row.measured)),
            number_cell(row.error, unbroken(f"{100 * row.error:+.1f} %")),
            *(Text("yes") if hit else Text("no", None, "bad") for hit in (row.hit, row.hit_90)),
        ]
        for row in rows[-limit:]
    ]
    label = f"Table of forecasts that were measured since, {results.title}"
    return table(label, head, cells, len(rows), ("forecast", "forecasts.csv"))
