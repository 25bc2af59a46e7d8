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


def prediction_section(study: ExperimentResults, limit: int) -> PredictionSection | None:
    """The section; tables have at most ``limit`` rows. None where nothing is or was predicted."""
    rows, scored = predictions(study), study.rows("forecasts")
    if not rows and not scored:
        return None
    coverage, missed = _rolling(study, rows)
    return PredictionSection(
        _predicted(study, known(rows), limit),
        _refusals(study, rows),
        _forecasts(study, scored, limit),
        coverage,
        missed,
        _targets(study, study.rows("target_times"), limit),
    )


def _predicted(
    study: ExperimentResults, rows: Sequence[Predicted], limit: int
) -> dict[str, Any] | None:
    if not rows:
        return None
    costed = any(one.number("node_hours") is not None for one in rows)
    names = (
        *("What", study.scale.capitalize(), "Predicted [95 %]", "50 % interval"),
        *("Efficiency [95 %]", "Grows most there"),
        *(["Node-hours of an epoch [95 %]"] if costed else []),
        *("Largest measured", "Trust up to", "Forecasts within"),
    )
    head = _headings(names, (names[0], names[5]))
    cells = [_cells(study, one, costed) for one in rows[:limit]]
    label = f"Table of predictions, {study.title}"
    return table(label, head, cells, len(rows), ("prediction", "prediction.csv"))


def _cells(study: ExperimentResults, one: Predicted, costed: bool) -> list[Text]:
    factor, unit = _scaled(study, str(one.get("metric")), str(one.get("unit")))
    ends = ("value", "low", "high", "low_50", "high_50")
    value, low, high, low_50, high_50 = ((one.number(name) or 0.0) * factor for name in ends)
    efficiency = [one.number(f"efficiency{end}") for end in ("", "_low", "_high")]
    hours, low_hours, high_hours = (one.number(f"node_hours{e}") for e in ("", "_low", "_high"))
    share = one.number("term_share") or 0.0
    count = study.scale_of(one.row)
    inner = with_interval(value, low_50, high_50).partition(" ")[2]
    grows = unbroken(f"{100 * share:.0f} % of the cost")
    return [
        Text(_what(study, one.row, one.get, unit)),
        _number(count, f"{count:,}"),
        _number(value, with_interval(value, low, high)),
        _number(high_50 - low_50, inner),
        _number(efficiency[0] or 0.0, percent(*efficiency)),
        Text(f"{formula_of(str(one.get('term')))}, {grows}"),
        *([_number(hours or 0.0, with_interval(hours, low_hours, high_hours))] if costed else []),
        _number(one.get("largest"), f"{one.get('largest'):,}"),
        _number(one.get("trusted_to"), f"{one.get('trusted_to'):,}"),
        _number(
            one.get("forecasts_within"), f"{one.get('forecasts_within')} of {one.get('forecasts')}"
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


def _scaled(study: ExperimentResults, metric: str, unit: str) -> tuple[float, str]:
    """Factor and unit in which the page shows a metric."""
    measure = study.measures.get(metric)
    return (measure.factor, measure.unit) if measure else (1.0, unit)


def _what(study: ExperimentResults, row: Row, get: Callable[[str], Any], unit: str) -> str:
    """``batch_size 4: Total throughput [samples/s], later epochs``."""
    metric, phase = str(get("metric")), str(get("phase"))
    measure = study.measures.get(metric)
    label = measure.label if measure else metric.replace("_", " ")
    series = study.describe(row, study.series_names) if study.series_names else ""
    epochs = f", {PHASES[phase]}" if phase != "run" else ""
    return f"{f'{series}: ' if series else ''}{label} [{unit}]{epochs}"


def _refusals(study: ExperimentResults, rows: Sequence[Predicted]) -> list[str]:
    """Each reason once, with what it is about."""
    found: dict[str, list[str]] = {}
    for one in rows:
        if one.refused:
            what = _what(study, one.row, one.get, str(one.get("unit")))
            found.setdefault(one.refused, []).append(what)
    return [f"{why} ({listed(list(dict.fromkeys(whats)), 4)})" for why, whats in found.items()]


def _rolling(study: ExperimentResults, rows: Sequence[Predicted]) -> tuple[str, list[str]]:
    """The coverage that rolling forecasts reached over all series, and those that missed."""
    series: dict[tuple[Any, ...], Predicted] = {}
    names = ("metric", "phase", "based_on", "smallest", "largest")
    for one in rows:
        key = (*study.key(one.row, study.series_names), *(one.get(name) for name in names))
        series.setdefault(key, one)
    every = sum(int(one.get("forecasts") or 0) for one in series.values())
    within = sum(int(one.get("forecasts_within") or 0) for one in series.values())
    if not every:
        return "", []
    text = (
        f"Of {counted(every, 'rolling forecast')} of measured counts from the smaller ones, "
        f"{within} {'was' if within == 1 else 'were'} within the 95 % interval."
    )
    missed = [
        f"{_what(study, one.row, one.get, str(one.get('unit')))}: {one.get('missed')}"
        for one in series.values()
        if one.get("missed")
    ]
    return text, missed


def _forecasts(study: ExperimentResults, rows: Sequence[Row], limit: int) -> dict[str, Any] | None:
    if not rows:
        return None
    names = (
        *("What", study.scale.capitalize(), "Made", "From counts to", "Predicted [95 %]"),
        *("50 % interval", "Measured", "Measured over predicted", "Within 95 %", "Within 50 %"),
    )
    head = _headings(names, (names[0], names[2], *names[8:]))
    cells = [_scored(study, row) for row in rows[-limit:]]
    label = f"Table of forecasts that were measured since, {study.title}"
    return table(label, head, cells, len(rows), ("forecast", "forecasts.csv"))


def _scored(study: ExperimentResults, row: Row) -> list[Text]:
    def get(name: str) -> Any:
        return row.get(prediction_column(name, study.axes))

    factor, unit = _scaled(study, str(get("metric")), str(get("unit")))
    names = ("predicted", "low", "high", "low_50", "high_50", "measured")
    value, low, high, low_50, high_50, measured = (factor * float(get(name)) for name in names)
    count, error = study.scale_of(row), float(get("error"))
    inner = with_interval(value, low_50, high_50).partition(" ")[2]
    return [
        Text(_what(study, row, get, unit)),
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


def _targets(study: ExperimentResults, rows: Sequence[Row], limit: int) -> dict[str, Any] | None:
    """Times to the target; what is refused stays in its row, in words."""
    if not rows:
        return None
    series = study.series_names
    names = (
        *(["Series"] if series else []),
        *(study.scale.capitalize(), "Time to the target [95 %]", "Epochs to it [95 %]"),
        *("Global batch", "Epochs measured at", "Mean epoch [95 %]", "Refused"),
    )
    cells = []
    for row in rows[:limit]:
        told = {name: row[prediction_column(name, study.axes)] for name in _OF_TARGETS}
        time, low, high = (told[f"time{end}"] for end in _ENDS)
        known = finite(time)
        epochs, each = (
            with_interval(told[name], told[f"{name}_low"], told[f"{name}_high"], unit)
            for name, unit in (("epochs", ""), ("epoch_seconds", "s"))
        )
        count, batch = study.scale_of(row), told["global_batch"]
        cells.append([
            *([Text(study.describe(row, series))] if series else []),
            _number(count, f"{count:,}"),
            _number(time, in_time(time, low, high) if known else "–"),
            _number(told["epochs"], epochs),
            _number(batch, f"{batch:,}" if finite(batch) else "–"),
            Text(str(told["epochs_at"] or "–")),
            _number(told["epoch_seconds"], each),
            Text(str(told["refused"] or "")),
        ])  # fmt: skip
    head = _headings(names, ("Series", "Epochs measured at", "Refused"))
    label = f"Table of times to the target, {study.title}"
    return table(label, head, cells, len(rows), ("time", "target_times.csv"))


_ENDS = ("", "_low", "_high")
_OF_TARGETS = (
    *(f"{name}{end}" for name in ("time", "epochs", "epoch_seconds") for end in _ENDS),
    *("global_batch", "epochs_at", "refused"),
)


def _held(hit: bool) -> Text:
    return Text("yes") if hit else Text("no", None, "bad")
