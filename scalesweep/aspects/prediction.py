"""The table ``prediction`` of counts that were not measured (docs/methods/prediction.md).

It has rates of all ranks together (total throughput, and plain metrics in
something/s) and times of work. Its rows have the source ``predicted``, and are in no other table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.prediction import held, predict, refusals
from scalesweep.core.formatting import PHASES, with_interval
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.points_table import Cell, Shown, Table, declared_table, share_text
from scalesweep.experiment.results import ExperimentResults, Series
from scalesweep.experiment.results import Series as ScalingSeries
from scalesweep.experiment.sections import Section
from scalesweep.findings.base import (
    NOTE,
    Finding,
    Number,
    Rule,
    declared_evidence,
    estimate_of,
    number_of,
)
from scalesweep.table.declared import Estimate, SourceRow, column, numbers_of
from scalesweep.tables.machine import UNKNOWN, Machine
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.predictable import PREDICTED, MeasuredSeries, predictable, shared


@dataclass(frozen=True, kw_only=True)
class Prediction(SourceRow, table="prediction"):
    """A count of a series that was not measured, and what it would give in one measure.

    Parameters that change along the series are missing. A row that is refused has no number.
    """

    source: str = column("`predicted`", default=PREDICTED)
    based_on: str = column("the source of the points that the series is continued from")
    metric: str = column("what is predicted")
    phase: str = column("`init`, `later` or `run`")
    unit: str = column("the unit of `value`")
    value: Estimate | None = column(
        "the predicted rate or time", ends=("low", "high"), default=None
    )
    low_90: float | None = column("lower end of the 90 % interval of `value`", default=None)
    high_90: float | None = column("upper end of the 90 % interval of `value`", default=None)
    efficiency: Estimate | None = column(
        "what a unit of work costs at the smallest count over what it costs here", "1", default=None
    )
    law: str | None = column("the growing term of the law of the largest weight", default=None)
    points: int | None = column("measured counts of the series", "1")
    smallest: int | None = column("the smallest of them", "1")
    largest: int | None = column("the largest of them", "1")
    error: float | None = column(
        "relative error of a forecast over one doubling, by the series and published ones", "1",
        default=None,
    )  # fmt: skip
    forecasts: int | None = column("forecasts of measured counts from the smaller ones", "1")
    forecasts_within: int | None = column("those within their interval", "1")
    refused: str | None = column("why there is no number", default=None)


def prediction_rows(
    data: ExperimentData, counts: Sequence[int], machine: Machine = UNKNOWN
) -> Iterator[Prediction]:
    """A row per series, rate or time and count of ``counts`` that was not measured.

    ``machine``: with the campaign's series.
    """
    for measured in predictable(data, machine):
        if wanted := [count for count in counts if count not in measured.counts]:
            yield from _rows(data, measured, wanted)


def _rows(
    data: ExperimentData, measured: MeasuredSeries, counts: Sequence[int]
) -> Iterator[Prediction]:
    """The rows of one series."""
    series, same = measured.series, shared(measured.points, data)
    within, made = held(series)
    head: dict[str, Any] = {
        "based_on": measured.points[0].source,
        "metric": measured.measure[0],
        "phase": measured.measure[1],
        "unit": data.quantities[measured.measure[0]].unit,
        "points": len(measured.points),
        "smallest": measured.counts[0],
        "largest": measured.counts[-1],
        "forecasts": made,
        "forecasts_within": within,
    }
    for count, why in zip(counts, refusals(series, counts, data.scale), strict=True):
        numbers = {"refused": why} if why else _numbers(measured, count)
        yield Prediction(point={**same, data.scale: count}, **head, **numbers)


def _numbers(measured: MeasuredSeries, count: int) -> dict[str, Any]:
    """What is predicted at one count."""
    said, base = predict(measured.series, [count]), float(measured.series.cost[0])
    costs = [float(of[0]) for of in (said.cost, *said.interval(0.95), *said.interval(0.9))]
    value, *ends = (measured.value(cost, count) for cost in costs)
    return {
        "value": Estimate(value, min(ends[:2]), max(ends[:2])),
        "low_90": min(ends[2:]),
        "high_90": max(ends[2:]),
        "efficiency": Estimate(base / costs[0], base / costs[2], base / costs[1]),
        "law": said.law,
        "error": said.error,
    }


def _asked(inputs: TableInputs) -> Iterable[Prediction]:
    counts = inputs.data.experiment.get("predict") or []
    return prediction_rows(inputs.data, counts, inputs.machine) if counts else ()


MAKERS = (Maker(Prediction, _asked),)


def of_series(
    results: ExperimentResults, series: ScalingSeries, metric: str, phase: str
) -> list[Prediction]:
    """The rows of one series and measure, by count."""
    first, last = series.rows[0], series.rows[-1]
    own = results.key(first, results.series_names)
    rows = [
        row
        for row in results.of(Prediction)
        if (row.metric, row.phase, row.based_on) == (metric, phase, first["source"])
        and results.key(row.point, results.series_names) == own
    ]
    if results.entry["scaling"] == "strong" and len(results.series) > 1:
        ends = (results.scale_of(first), results.scale_of(last))
        rows = [row for row in rows if (row.smallest, row.largest) == ends]
    return sorted(rows, key=lambda row: results.scale_of(row.point))


def known(rows: Iterable[Prediction]) -> list[Prediction]:
    """Those with a number."""
    return [row for row in rows if not row.refused]


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


def prediction_table(results: ExperimentResults, limit: int) -> Table | None:
    """A row per series, measure and count; None if nothing is predicted."""

    def what(row: Prediction) -> str:
        measure = results.measures.get(row.metric)
        label, unit = (measure.label, measure.unit) if measure else (row.metric, row.unit)
        epochs = f", {PHASES[row.phase]}" if row.phase != "run" else ""
        return f"{label} [{unit}]{epochs}"

    def value(row: Prediction) -> Cell:
        measure = results.measures.get(row.metric)
        factor = measure.factor if measure else 1.0
        text = with_interval(*numbers_of(row.value, factor))
        return Cell(row.refused or text, bool(row.refused))

    columns: list[Shown] = [
        ("What", "metric", what),
        ("Predicted [95 %]", "value", value),
        ("Efficiency [95 %]", "efficiency", lambda row: share_text(row.efficiency)),
        ("Grows with", "law", lambda row: row.law or "–"),
        ("Largest measured", "largest", lambda row: f"{row.largest:,}"),
        ("Forecasts within", "forecasts_within", lambda row: f"{row.forecasts_within} of "
         f"{row.forecasts}" if row.forecasts else "–"),
    ]  # fmt: skip
    return declared_table(results, results.of(Prediction), columns, limit)


COMPUTED = (
    "Computed, not measured, and in no other table: continued from the measured counts. Forecasts "
    "within: the next measured counts that lay within the 95 % interval made from the smaller ones."
)
SECTION = Section("Predictions", prediction_table, lambda _results: [COMPUTED])
