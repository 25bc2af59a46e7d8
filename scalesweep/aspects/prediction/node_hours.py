"""Findings on what work costs: the count that does most for a node-hour."""

from dataclasses import dataclass

from scalesweep.analysis.metrics import column
from scalesweep.aspects.prediction.table import Prediction, known, of_series
from scalesweep.core.formatting import PHASES, finite, listed, with_interval
from scalesweep.experiment.results import ExperimentResults, Row, Series
from scalesweep.findings.base import NOTE, Finding, evidence_of
from scalesweep.table.declared import numbers_of

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


def best_for_a_node_hour(results: ExperimentResults) -> list[Finding]:
    """For each series with predictions the count, measured or predicted, that does most work for a
    node-hour, and those that are not clearly worse.

    Only where ranks are scaled over and the ranks of a node are known, and the best has an
    interval: without, nothing says that another is worse.
    """
    main, scale = results.main, results.scale
    if main is None or scale != "ranks" or results.tables.get(Prediction.TABLE) is None:
        return []
    if not main.unit.endswith("/s") or not main.higher:
        return []
    findings = []
    for series in results.series[:MAX_SERIES]:
        rates = _rates(results, series, main.steady_phase)
        if not any(rate.predicted for rate in rates):
            continue
        best = max(rates, key=lambda rate: rate.value)
        if best.low is None:
            continue
        alike = [
            rate for rate in rates
            if rate is not best and (rate.value if rate.high is None else rate.high) >= best.low
        ]  # fmt: skip
        findings.append(_finding(results, series, best, alike))
    return findings


def _rates(results: ExperimentResults, series: Series, phase: str) -> list[_Rate]:
    main = results.main
    assert main is not None
    rates = []
    for row in series.rows:
        numbers = [main.value(row, stat, phase) for stat in ("mean", "low", "high")]
        if made := _rate(results, row, numbers, predicted=False):
            rates.append(made)
    for prediction in known(of_series(results, series, main.metric, phase)):
        scaled = [*numbers_of(prediction.value, main.factor)]
        if made := _rate(results, prediction.row, scaled, predicted=True):
            rates.append(made)
    return rates


def _rate(
    results: ExperimentResults, row: Row, numbers: list[float | None], predicted: bool
) -> _Rate | None:
    fixed = results.entry["fixed"].get("ranks_per_node")
    per_node = row.get("ranks_per_node", fixed)
    if not finite(per_node) or per_node < 1 or numbers[0] is None:
        return None
    count = results.scale_of(row)
    hours = 3600 / -(-count // int(per_node))
    value, low, high = (None if number is None else number * hours for number in numbers)
    assert value is not None
    return _Rate(count, row, value, low, high, predicted)


def _finding(
    results: ExperimentResults, series: Series, best: _Rate, alike: list[_Rate]
) -> Finding:
    main = results.main
    assert main is not None
    unit = f"{main.unit.removesuffix('/s')} per node-hour"
    label = f"{series.label}: " if series.label else ""
    where = f" ({PHASES[main.steady_phase]})" if main.steady_phase != "run" else ""
    head = f"{label}most for a node-hour{where}: {results.scaled(best.count)}"
    head += " (predicted)" if best.predicted else ""
    text = f"{head}, {with_interval(best.value, best.low, best.high, unit)}"
    names = [f"{rate.count:,}{' (predicted)' if rate.predicted else ''}" for rate in alike]
    text += f"; not clearly worse: {listed(names, 8)}" if names else "; every other count is worse"
    table = Prediction.TABLE if best.predicted else "scaling"
    columns = [column(main.metric, stat, main.steady_phase) for stat in ("mean", "low", "high")]
    evidence = evidence_of(results, table, best.row, columns)
    source = str(series.rows[0]["source"])
    sentence = text if label else text[:1].upper() + text[1:]
    sentence = sentence if source == "measured" else f"From {source} points: {text}"
    return Finding(results.name, RULE, NOTE, f"{sentence}.", evidence)
