"""Efficiencies that a table prints, against those that its values give."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scalesweep.core.files import canonical_json
from scalesweep.importers.imported_run import ImportedRun
from scalesweep.importers.table_file import Row, half_unit
from scalesweep.importers.table_map import (
    MetricMap,
    RefusedRowError,
    Side,
    Source,
    TableMap,
    Values,
)


@dataclass(frozen=True)
class PrintedCheck:
    """How many printed values of a metric, or efficiencies of it, come out; ``others`` are lines
    that say which do not."""

    metric: str
    agree: int
    others: tuple[str, ...]


def check_printed(table_map: TableMap, runs: Sequence[ImportedRun]) -> list[PrintedCheck]:
    """Compare every printed efficiency with the one that the values of its series give.

    As in the table ``scaling``: against the smallest number of ranks of the series, per rank for a
    metric of all ranks together. Values and efficiency are rounded where they are printed, so they
    agree within half of their last digits.
    """
    rows = {row.line: row for row in table_map.table.rows}
    checks = []
    for metric in table_map.metrics.values():
        if not any(values.efficiency for values in metric.values.values()):
            continue
        agree, others = 0, []
        for line in _differences(table_map, metric, runs, rows):
            if line is None:
                agree += 1
            else:
                others.append(line)
        checks.append(PrintedCheck(metric.name, agree, tuple(others)))
    return checks


def _differences(
    table_map: TableMap, metric: MetricMap, runs: Sequence[ImportedRun], rows: dict[int, Row]
) -> Iterator[str | None]:
    """For every printed efficiency None if it comes out, else what is printed and what comes."""
    series: dict[str, list[ImportedRun]] = {}
    for run in runs:
        if metric.name in run.metrics and run.line is not None:
            key = {name: value for name, value in run.point.items() if name != "ranks"}
            # In weak scaling a total amount of work grows with the ranks.
            series.setdefault(canonical_json(key), []).append(run)
    for members in series.values():
        base = min(members, key=lambda run: run.point["ranks"])
        bases = [run for run in members if run.point["ranks"] == base.point["ranks"]]
        mean = sum(_share(metric, run) for run in bases) / len(bases)
        for run in members:
            values = metric.values[side_of(table_map, run)]
            row = rows[run.line or 0]
            printed = _number(values.efficiency, row)
            if printed is None or not mean:
                continue
            computed = _share(metric, run) / mean
            if metric.better == "lower":
                computed = 1 / computed
            rounded = rounding(values, row) + rounding(values, rows[base.line or 0])
            allowed = half_digit(values.efficiency, row) + abs(computed) * rounded + 1e-9
            if abs(computed - printed) <= allowed:
                yield None
            else:
                place = f"{table_map.table.file}:{run.line}: {metric.name}"
                yield f"{place}: printed {printed:.6g}, the values give {computed:.6g}"


def _share(metric: MetricMap, run: ImportedRun) -> float:
    """The value per rank, of a rate over all ranks; else the value."""
    value = float(run.metrics[metric.name]["value"])
    total = metric.scope == "total" and metric.better == "higher"
    return value / run.point["ranks"] if total else value


def side_of(table_map: TableMap, run: ImportedRun) -> Side:
    """Which of the values side by side a run is."""
    name = table_map.side_by_side
    return Side(None if name is None else str(run.point[name]))


def _number(source: Source | None, row: Row) -> float | None:
    try:
        return None if source is None else source.number(row)
    except RefusedRowError:
        return None


def half_digit(source: Source | None, row: Row) -> float:
    """Half of the last digit that the columns of a source print."""
    if source is None:
        return 0.0
    halves = [half_unit(row.cells[name]) for name in source.columns]
    value = abs(_number(source, row) or 0.0)
    if len(halves) == 1 and len(source.columns) == 1:
        plain = _plain(source, row)
        # A formula (percent / 100) scales the digits as it scales the number.
        return halves[0] * (value / plain if plain else 1.0)
    return sum(halves)


def _plain(source: Source, row: Row) -> float:
    try:
        return abs(source.table.number(row.cells[source.columns[0]]) or 0.0)
    except ValueError:
        return 0.0


def rounding(values: Values, row: Row) -> float:
    """Relative rounding of a metric's value in a row."""
    relative = 0.0
    for name in values.mean.columns:
        try:
            number = abs(values.mean.table.number(row.cells[name]) or 0.0)
        except ValueError:
            continue
        if number:
            relative += half_unit(row.cells[name]) / number
    return relative
