"""What an experiment's report says of counts that were not measured, and how past forecasts did."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.prediction.models import formula_of
from scalesweep.aspects.prediction.forecasts import Scored
from scalesweep.aspects.prediction.table import Prediction, known
from scalesweep.aspects.prediction.target_times import TargetTime
from scalesweep.aspects.prediction.words import in_time
from scalesweep.core.formatting import PHASES, counted, listed, number, percent, with_interval
from scalesweep.experiment.cells import Text, headings, number_cell, table, unbroken
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import numbers_of


@dataclass(frozen=True)
class PredictionSection:
    """Tables for ``cells.html.j2``, None where there are no rows; and what the first leaves out."""

    predicted: dict[str, Any] | None
    refused: Sequence[str]
    forecasts: dict[str, Any] | None
    coverage: str
    missed: Sequence[str]
    targets: dict[str, Any] | None


def prediction_section(results: ExperimentResults, limit: int) -> PredictionSection | None:
    """The section; tables have at most ``limit`` rows. None where nothing is or was predicted."""
    rows, scored = results.of(Prediction), results.of(Scored)
    if not rows and not scored:
        return None
    coverage, missed = _rolling(results, rows)
    return PredictionSection(
        _predicted(results, known(rows), limit),
        _refusals(results, rows),
        _forecasts(results, scored, limit),
        coverage,
        missed,
        _targets(results, results.of(TargetTime), limit),
    )


def _predicted(
    results: ExperimentResults, rows: Sequence[Prediction], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    costed = any(row.node_hours is not None for row in rows)
    names = (
        *("What", results.scale.capitalize(), "Predicted [95 %]", "50 % interval"),
        *("Efficiency [95 %]", "Grows most there"),
        *(["Node-hours of an epoch [95 %]"] if costed else []),
        *("Largest measured", "Trust up to", "Forecasts within"),
    )
    head = _headings(names, (names[0], names[5]))
    cells = [_cells(results, row, costed) for row in rows[:limit]]
    label = f"Table of predictions, {results.title}"
    return table(label, head, cells, len(rows), ("prediction", "prediction.csv"))


def _cells(results: ExperimentResults, row: Prediction, costed: bool) -> list[Text]:
    factor, unit = _scaled(results, row.metric, row.unit)
    value, low, high = (number or 0.0 for number in numbers_of(row.value, factor))
    low_50, high_50 = ((number or 0.0) * factor for number in (row.low_50, row.high_50))
    efficiency, hours = numbers_of(row.efficiency), numbers_of(row.node_hours)
    share = row.term_share or 0.0
    count = results.scale_of(row.point)
    grows = unbroken(f"{100 * share:.0f} % of the cost")
    return [
        Text(_what(results, row, unit)),
        _number(count, f"{count:,}"),
        _number(value, with_interval(value, low, high)),
        _inner(value, low_50, high_50),
        _number(efficiency[0] or 0.0, percent(*efficiency)),
        Text(f"{formula_of(str(row.term))}, {grows}"),
        *([_number(hours[0] or 0.0, with_interval(*hours))] if costed else []),
        _number(row.largest, f"{row.largest:,}"),
        _number(row.trusted_to, f"{row.trusted_to:,}"),
        _number(row.forecasts_within, f"{row.forecasts_within} of {row.forecasts}"),
    ]


def _inner(value: float, low: float, high: float) -> Text:
    """The 50 % interval of a value, sorted by its width."""
    return _number(high - low, with_interval(value, low, high).partition(" ")[2])


def _headings(names: Sequence[str], words: Collection[str]) -> list[Text]:
    """Headings of columns, of which ``words`` hold words, the others numbers."""
    solid = [unbroken(name) if "%" in name else name for name in names]
    return headings(
        *solid, numbers=[s for s, n in zip(solid, names, strict=True) if n not in words]
    )


def _number(value: Any, text: str) -> Text:
    """A number whose text breaks before an interval only."""
    return number_cell(value, unbroken(text))


def _scaled(results: ExperimentResults, metric: str, unit: str) -> tuple[float, str]:
    """Factor and unit in which the page shows a metric."""
    measure = results.measures.get(metric)
    return (measure.factor, measure.unit) if measure else (1.0, unit)


def _what(results: ExperimentResults, row: Prediction | Scored, unit: str = "") -> str:
    """``batch_size 4: Total throughput [samples/s], later epochs``."""
    measure = results.measures.get(row.metric)
    label = measure.label if measure else row.metric.replace("_", " ")
    series = results.describe(row.point, results.series_names) if results.series_names else ""
    epochs = f", {PHASES[row.phase]}" if row.phase != "run" else ""
    return f"{f'{series}: ' if series else ''}{label} [{unit or row.unit}]{epochs}"


def _refusals(results: ExperimentResults, rows: Sequence[Prediction]) -> list[str]:
    """Each reason once, with what it is about."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refused:
            reasons.setdefault(row.refused, []).append(_what(results, row))
    return [f"{why} ({listed(list(dict.fromkeys(whats)), 4)})" for why, whats in reasons.items()]


def _rolling(results: ExperimentResults, rows: Sequence[Prediction]) -> tuple[str, list[str]]:
    """The coverage that rolling forecasts reached over all series, and those that missed."""
    series: dict[tuple[Any, ...], Prediction] = {}
    for row in rows:
        names = results.key(row.point, results.series_names)
        key = (*names, row.metric, row.phase, row.based_on, row.smallest, row.largest)
        series.setdefault(key, row)
    every = sum(row.forecasts or 0 for row in series.values())
    within = sum(row.forecasts_within or 0 for row in series.values())
    if not every:
        return "", []
    text = (
        f"Of {counted(every, 'rolling forecast')} of measured counts from the smaller ones, "
        f"{within} {'was' if within == 1 else 'were'} within the 95 % interval."
    )
    missed = [f"{_what(results, row)}: {row.missed}" for row in series.values() if row.missed]
    return text, missed


def _forecasts(
    results: ExperimentResults, rows: Sequence[Scored], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    names = (
        *("What", results.scale.capitalize(), "Made", "From counts to", "Predicted [95 %]"),
        *("50 % interval", "Measured", "Measured over predicted", "Within 95 %", "Within 50 %"),
    )
    head = _headings(names, (names[0], names[2], *names[8:]))
    cells = [_scored(results, row) for row in rows[-limit:]]
    label = f"Table of forecasts that were measured since, {results.title}"
    return table(label, head, cells, len(rows), ("forecast", "forecasts.csv"))


def _scored(results: ExperimentResults, row: Scored) -> list[Text]:
    factor, unit = _scaled(results, row.metric, str(row.unit))
    value, low, high = (number or 0.0 for number in numbers_of(row.predicted, factor))
    low_50, high_50, measured = (factor * n for n in (row.low_50, row.high_50, row.measured))
    count = results.scale_of(row.point)
    return [
        Text(_what(results, row, unit)),
        _number(count, f"{count:,}"),
        Text(row.made[:10].replace("-", "\N{NON-BREAKING HYPHEN}"), row.made),
        _number(row.largest, f"{row.largest:,}"),
        _number(value, with_interval(value, low, high)),
        _inner(value, low_50, high_50),
        _number(measured, number(measured)),
        _number(row.error, f"{100 * row.error:+.1f} %"),
        *(Text("yes") if held else Text("no", None, "bad") for held in (row.hit, row.hit_50)),
    ]


def _targets(
    results: ExperimentResults, rows: Sequence[TargetTime], limit: int
) -> dict[str, Any] | None:
    """Times to the target; what is refused stays in its row, in words."""
    if not rows:
        return None
    series = results.series_names
    names = (
        *(["Series"] if series else []),
        *(results.scale.capitalize(), "Time to the target [95 %]", "Epochs to it [95 %]"),
        *("Global batch", "Epochs measured at", "Mean epoch [95 %]", "Refused"),
    )
    cells = []
    for row in rows[:limit]:
        count, batch = results.scale_of(row.point), row.global_batch
        epochs, seconds = numbers_of(row.epochs), numbers_of(row.epoch_seconds)
        cells.append([
            *([Text(results.describe(row.point, series))] if series else []),
            _number(count, f"{count:,}"),
            _number(numbers_of(row.time)[0], "–" if row.time is None else in_time(row.time)),
            _number(epochs[0], with_interval(*epochs)),
            _number(batch, "–" if batch is None else f"{batch:,}"),
            Text(row.epochs_at or "–"),
            _number(seconds[0], with_interval(*seconds, "s")),
            Text(row.refused or ""),
        ])  # fmt: skip
    head = _headings(names, ("Series", "Epochs measured at", "Refused"))
    label = f"Table of times to the target, {results.title}"
    return table(label, head, cells, len(rows), ("time", "target_times.csv"))
