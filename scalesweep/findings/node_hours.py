"""Findings on what work costs: the count that does most for a node-hour."""

from dataclasses import dataclass

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import PHASES, finite, listed, with_interval
from scalesweep.experiment.predictions import known, of_series
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import NOTE, Finding, evidence_of

RULE = "node-hours"
MAX_SERIES = 4


@dataclass(frozen=True)
class _Rate:
    """Work for a node-hour at a count, with its 95 % bounds where there are any."""

    count: int
    row: Row
    value: float
    low: float | None
    high: float | None
    predicted: bool


def best_for_a_node_hour(study: ExperimentResults) -> list[Finding]:
    """For each series with predictions the count, measured or predicted, that does most work for a
    node-hour, and those that are not clearly worse.

    Only where ranks are scaled over and the ranks of a node are known, and the best has an
    interval: without, nothing says that another is worse.
    """
    main, scale = study.main, study.scale
    if main is None or scale != "ranks" or study.tables.get("prediction") is None:
        return []
    if not main.unit.endswith("/s") or not main.higher:
        return []
    found = []
    for series in study.series[:MAX_SERIES]:
        rates = _rates(study, series, main.steady_phase)
        if not any(one.predicted for one in rates):
            continue
        best = max(rates, key=lambda one: one.value)
        if best.low is None:
            continue
        alike = [
            one for one in rates
            if one is not best and (one.high if one.high is not None else one.value) >= best.low
        ]  # fmt: skip
        found.append(_finding(study, series, best, alike))
    return found


def _rates(study: ExperimentResults, series: Series, phase: str) -> list[_Rate]:
    main = study.main
    assert main is not None
    found = []
    for row in series.rows:
        numbers = [main.value(row, stat, phase) for stat in ("mean", "low", "high")]
        if made := _rate(study, row, numbers, predicted=False):
            found.append(made)
    for one in known(of_series(study, series, main.metric, phase)):
        values = [one.number(name) for name in ("value", "low", "high")]
        scaled = [None if value is None else value * main.factor for value in values]
        if made := _rate(study, one.row, scaled, predicted=True):
            found.append(made)
    return found


def _rate(
    study: ExperimentResults, row: Row, numbers: list[float | None], predicted: bool
) -> _Rate | None:
    fixed = study.entry["fixed"].get("ranks_per_node")
    per_node = row.get("ranks_per_node", fixed)
    if not finite(per_node) or per_node < 1 or numbers[0] is None:
        return None
    count = study.scale_of(row)
    hours = 3600 / -(-count // int(per_node))
    value, low, high = (None if one is None else one * hours for one in numbers)
    assert value is not None
    return _Rate(count, row, value, low, high, predicted)


def _finding(study: ExperimentResults, series: Series, best: _Rate, alike: list[_Rate]) -> Finding:
    main = study.main
    assert main is not None
    unit = f"{main.unit.removesuffix('/s')} per node-hour"
    label = f"{series.label}: " if series.label else ""
    where = f" ({PHASES[main.steady_phase]})" if main.steady_phase != "run" else ""
    head = f"{label}most for a node-hour{where}: {study.scaled(best.count)}"
    head += " (predicted)" if best.predicted else ""
    text = f"{head}, {with_interval(best.value, best.low, best.high, unit)}"
    names = [f"{one.count:,}{' (predicted)' if one.predicted else ''}" for one in alike]
    text += f"; not clearly worse: {listed(names, 8)}" if names else "; every other count is worse"
    table = "prediction" if best.predicted else "scaling"
    columns = [column(main.metric, stat, main.steady_phase) for stat in ("mean", "low", "high")]
    evidence = evidence_of(study, table, best.row, columns)
    source = str(series.rows[0]["source"])
    said = text if label else text[:1].upper() + text[1:]
    said = said if source == "measured" else f"From {source} points: {text}"
    return Finding(study.name, RULE, NOTE, f"{said}.", evidence)
