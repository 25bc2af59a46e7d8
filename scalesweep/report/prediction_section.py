"""What an experiment's report says of counts that were not measured, and how past forecasts did."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.prediction.models import formula_of
from scalesweep.core.formatting import (
    PHASES,
    counted,
    finite,
    listed,
    number,
    percent,
    with_interval,
)
from scalesweep.experiment.cells import Text, headings, number_cell, table, unbroken
from scalesweep.experiment.predictions import Predicted, known, predictions
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.target_times import in_time
from scalesweep.tables.prediction import prediction_column


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
    rows, scored = predictions(results), results.rows("forecasts")
    if not rows and not scored:
        return None
    coverage, missed = _rolling(results, rows)
    return PredictionSection(
        _predicted(results, known(rows), limit),
        _refusals(results, rows),
        _forecasts(results, scored, limit),
        coverage,
        missed,
        _targets(results, results.rows("target_times"), limit),
    )


def _predicted(
    results: ExperimentResults, rows: Sequence[Predicted], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    costed = any(row.number("node_hours") is not None for row in rows)
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


def _cells(results: ExperimentResults, predicted: Predicted, costed: bool) -> list[Text]:
    factor, unit = _scaled(results, str(predicted.get("metric")), str(predicted.get("unit")))
    ends = ("value", "low", "high", "low_50", "high_50")
    value, low, high, low_50, high_50 = ((predicted.number(name) or 0.0) * factor for name in ends)
    efficiency = [predicted.number(f"efficiency{end}") for end in ("", "_low", "_high")]
    hours, low_hours, high_hours = (
        predicted.number(f"node_hours{e}") for e in ("", "_low", "_high")
    )
    share = predicted.number("term_share") or 0.0
    count = results.scale_of(predicted.row)
    inner = with_interval(value, low_50, high_50).partition(" ")[2]
    grows = unbroken(f"{100 * share:.0f} % of the cost")
    return [
        Text(_what(results, predicted.row, predicted.get, unit)),
        _number(count, f"{count:,}"),
        _number(value, with_interval(value, low, high)),
        _number(high_50 - low_50, inner),
        _number(efficiency[0] or 0.0, percent(*efficiency)),
        Text(f"{formula_of(str(predicted.get('term')))}, {grows}"),
        *([_number(hours or 0.0, with_interval(hours, low_hours, high_hours))] if costed else []),
        _number(predicted.get("largest"), f"{predicted.get('largest'):,}"),
        _number(predicted.get("trusted_to"), f"{predicted.get('trusted_to'):,}"),
        _number(
            predicted.get("forecasts_within"),
            f"{predicted.get('forecasts_within')} of {predicted.get('forecasts')}",
        ),
    ]


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


def _what(results: ExperimentResults, row: Row, get: Callable[[str], Any], unit: str) -> str:
    """``batch_size 4: Total throughput [samples/s], later epochs``."""
    metric, phase = str(get("metric")), str(get("phase"))
    measure = results.measures.get(metric)
    label = measure.label if measure else metric.replace("_", " ")
    series = results.describe(row, results.series_names) if results.series_names else ""
    epochs = f", {PHASES[phase]}" if phase != "run" else ""
    return f"{f'{series}: ' if series else ''}{label} [{unit}]{epochs}"


def _refusals(results: ExperimentResults, rows: Sequence[Predicted]) -> list[str]:
    """Each reason once, with what it is about."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.refused:
            what = _what(results, row.row, row.get, str(row.get("unit")))
            reasons.setdefault(row.refused, []).append(what)
    return [f"{why} ({listed(list(dict.fromkeys(whats)), 4)})" for why, whats in reasons.items()]


def _rolling(results: ExperimentResults, rows: Sequence[Predicted]) -> tuple[str, list[str]]:
    """The coverage that rolling forecasts reached over all series, and those that missed."""
    series: dict[tuple[Any, ...], Predicted] = {}
    names = ("metric", "phase", "based_on", "smallest", "largest")
    for row in rows:
        key = (*results.key(row.row, results.series_names), *(row.get(name) for name in names))
        series.setdefault(key, row)
    every = sum(int(series.get("forecasts") or 0) for series in series.values())
    within = sum(int(series.get("forecasts_within") or 0) for series in series.values())
    if not every:
        return "", []
    text = (
        f"Of {counted(every, 'rolling forecast')} of measured counts from the smaller ones, "
        f"{within} {'was' if within == 1 else 'were'} within the 95 % interval."
    )
    missed = [
        f"{_what(results, series.row, series.get, str(series.get('unit')))}: {series.get('missed')}"
        for series in series.values()
        if series.get("missed")
    ]
    return text, missed


def _forecasts(
    results: ExperimentResults, rows: Sequence[Row], limit: int
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


def _scored(results: ExperimentResults, row: Row) -> list[Text]:
    def get(name: str) -> Any:
        return row.get(prediction_column(name, results.axes))

    factor, unit = _scaled(results, str(get("metric")), str(get("unit")))
    names = ("predicted", "low", "high", "low_50", "high_50", "measured")
    value, low, high, low_50, high_50, measured = (factor * float(get(name)) for name in names)
    count, error = results.scale_of(row), float(get("error"))
    inner = with_interval(value, low_50, high_50).partition(" ")[2]
    return [
        Text(_what(results, row, get, unit)),
        _number(count, f"{count:,}"),
        Text(str(get("made"))[:10].replace("-", "\N{NON-BREAKING HYPHEN}"), str(get("made"))),
        _number(get("largest"), f"{get('largest'):,}"),
        _number(value, with_interval(value, low, high)),
        _number(high_50 - low_50, inner),
        _number(measured, number(measured)),
        _number(error, f"{100 * error:+.1f} %"),
        *(
            Text("yes" if get(n) else "no", None, "" if get(n) else "bad")
            for n in ("hit", "hit_50")
        ),
    ]


def _targets(results: ExperimentResults, rows: Sequence[Row], limit: int) -> dict[str, Any] | None:
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
        target = {name: row[prediction_column(name, results.axes)] for name in _OF_TARGETS}
        time, low, high = (target[f"time{end}"] for end in _ENDS)
        known = finite(time)
        epochs, each = (
            with_interval(target[name], target[f"{name}_low"], target[f"{name}_high"], unit)
            for name, unit in (("epochs", ""), ("epoch_seconds", "s"))
        )
        count, batch = results.scale_of(row), target["global_batch"]
        cells.append([
            *([Text(results.describe(row, series))] if series else []),
            _number(count, f"{count:,}"),
            _number(time, in_time(time, low, high) if known else "–"),
            _number(target["epochs"], epochs),
            _number(batch, f"{batch:,}" if finite(batch) else "–"),
            Text(str(target["epochs_at"] or "–")),
            _number(target["epoch_seconds"], each),
            Text(str(target["refused"] or "")),
        ])  # fmt: skip
    head = _headings(names, ("Series", "Epochs measured at", "Refused"))
    label = f"Table of times to the target, {results.title}"
    return table(label, head, cells, len(rows), ("time", "target_times.csv"))


_ENDS = ("", "_low", "_high")
_OF_TARGETS = (
    *(f"{name}{end}" for name in ("time", "epochs", "epoch_seconds") for end in _ENDS),
    *("global_batch", "epochs_at", "refused"),
)


def _held(hit: bool) -> Text:
    return Text("yes") if hit else Text("no", None, "bad")
