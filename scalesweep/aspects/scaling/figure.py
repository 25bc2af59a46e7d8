"""Rates over the scale with their ideal, and the efficiency below, of all series."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from scalesweep.analysis.metrics import column
from scalesweep.aspects.prediction import known, of_series
from scalesweep.core.formatting import PHASES, finite
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.figures.drawing import Drawing, bounds, drawn, interval
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

SIZE = "model_parameters"
MOST_IDEALS = 3  # series that have their ideal drawn


def scaling_figures(results: ExperimentResults) -> list[Drawing]:
    """A figure per phase: the main metric above, the efficiency below."""
    main = results.main
    drawings: list[Drawing] = []
    for phase in main.phases if main else ():
        assert main is not None
        series = [
            line for line in _shown(results)
            if any(main.efficiency(row, phase)[0] is not None for row in line.rows)
        ]  # fmt: skip
        series.sort(key=lambda line: -(main.value(line.rows[-1], "mean", phase) or 0))
        if series:
            drawings += _figure(results, main, phase, series)
    return drawings


def _shown(results: ExperimentResults) -> list[Series]:
    """The series, none of layouts, of which an aspect draws the best."""
    of_layouts = bool(results.rows("best_layouts", ["layout"]))
    return [] if of_layouts or results.scale not in results.leaders else results.series


def _figure(
    results: ExperimentResults, main: Measure, phase: str, series: Sequence[Series]
) -> list[Drawing]:
    local = results.measures.get("local_throughput")
    alone = len(series) == 1
    both = local if alone and main.metric == "total_throughput" else None
    named = [(main, "total" if both else ""), *([(both, "per rank")] if both else [])]
    rows: list[dict[str, Any]] = []
    for line in series:
        labels = [word or (main.label if alone else line.label) for _, word in named]
        for (measure, _), label in zip(named, labels, strict=True):
            rows += _measured(results, measure, phase, line, label)
        rows += _predicted(results, main, phase, line, labels[0])
    if len(series) > MOST_IDEALS:
        rows = [row for row in rows if row["style"] != "ideal"]
    frame = pd.DataFrame(rows)
    rates, shares = (frame[frame["of"] == of].drop(columns="of") for of in ("rate", "share"))
    kind = results.entry["scaling"]
    scale = Axis(f"Number of {results.scale}", "scale")
    unit = "samples/s" if len(named) > 1 else main.unit or main.label
    target = Axis("Efficiency", "share", {f"{100 * results.target:g} % target": results.target})
    holes: Mapping[Any, str] = series[0].holes if alone else {}
    panels = [
        Lines(rates, Axis("", "scale"), Axis(unit, "log"), "", holes, height=2.0),
        Lines(shares, scale, target, "", holes, height=1.6),
    ]
    what = f"{kind + ' ' if kind != 'none' else ''}scaling, {PHASES[phase]}"
    note = (
        f"Dashed: the ideal; efficiency is relative to the smallest {results.scale_words} of each "
        "series. Bands and bars: 95 % intervals, ± std of a single repeat above."
    )
    return drawn(results, f"scaling-{phase}", what, note, panels,
                 detail=series[0].label if alone else "")  # fmt: skip


def _measured(
    results: ExperimentResults, measure: Measure, phase: str, line: Series, label: str
) -> Iterator[dict[str, Any]]:
    """Rows of a series: its rates, their ideals, its efficiencies; a hole breaks a line."""
    there: dict[int, Row] = {results.scale_of(row): row for row in line.rows}
    for count in sorted({*there, *line.holes}):
        row = there.get(count, {})
        at = {"x": count, "series": label, "style": ""}
        low, high = bounds(measure, row, phase)
        rate = measure.value(row, "mean", phase)
        yield {**at, "of": "rate", "y": rate, "low": low, "high": high}
        share, low, high = measure.efficiency(row, phase)
        yield {**at, "of": "share", "y": share, "low": low, "high": high}
        ideal = row.get(column(f"{measure.stem}_ideal", "", phase))
        if finite(ideal):
            yield {**at, "of": "rate", "style": "ideal", "y": ideal * measure.factor}


def _predicted(
    results: ExperimentResults, main: Measure, phase: str, line: Series, label: str
) -> Iterator[dict[str, Any]]:
    """Rows of the predictions of a series, joined to its largest measured count."""
    ahead = known(of_series(results, line, main.metric, phase))
    if not ahead:
        return
    last, at = line.rows[-1], {"series": label, "style": "predicted"}
    start = {**at, "x": results.scale_of(last)}
    yield {**start, "of": "rate", "y": main.value(last, "mean", phase)}
    yield {**start, "of": "share", "y": main.efficiency(last, phase)[0]}
    for row in ahead:
        here = {**at, "x": results.scale_of(row.point)}
        yield {**here, "of": "rate", **interval(row.value, main.factor, "y")}
        yield {**here, "of": "share", **interval(row.efficiency, 1.0, "y")}


def size_figures(results: ExperimentResults) -> list[Drawing]:
    """Efficiency at the largest scale against the number of trained parameters of each model."""
    main = results.main
    size = column(SIZE, "mean", "run")
    drawings: list[Drawing] = []
    for phase in main.phases if main else ():
        assert main is not None
        rows = []
        for series in _shown(results):
            last = series.rows[-1]
            value, low, high = main.efficiency(last, phase)
            if len(series.rows) > 1 and finite(last.get(size), value):
                rows.append({"x": last[size], "series": series.label, "style": "dots", "y": value,
                             "low": low, "high": high})  # fmt: skip
        if len({row["x"] for row in rows}) > 1:
            panel = Lines(pd.DataFrame(rows), Axis("Trained parameters of the model", "values"),
                          Axis("Efficiency", "share", {"ideal": 1.0}))  # fmt: skip
            note = f"Each series at its largest {results.scale_words}. Lines: 95 % intervals."
            what = f"efficiency by size of the model, {PHASES[phase]}"
            drawings += drawn(results, f"size-{phase}", what, note, [panel])
    return drawings


FIGURES = (scaling_figures, size_figures)
