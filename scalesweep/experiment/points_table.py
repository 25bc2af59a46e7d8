"""The table of an experiment's points as the report shows it: compact and rounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import PHASES, finite, percent, text_of, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.table.declared import Estimate, numbers_of

MAX_MEASURES = 4
_DECLARED = "declared row"  # of a row, the object that its cells are made of


@dataclass(frozen=True)
class Cell:
    """Text of a cell; ``bad`` marks an efficiency clearly under the target or a missing result."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class Column:
    """A column of values: its heading, its cells, and the table's column that they show."""

    heading: str
    make: Callable[[Row], Cell | str]
    name: str = ""


# A column of a declared table: its heading, its name there, and what makes a cell of a row.
Shown = tuple[str, str, Callable[[Any], Cell | str]]


@dataclass(frozen=True)
class Table:
    """Headings in two levels and rows, of which a page or a paper has the first ``limit``.

    ``lead`` are the headings without a group (the first ``parameters`` of them parameters);
    ``groups`` are (heading, columns) of the values; an empty heading is none. ``sources`` are the
    table's rows, of which ``cells`` makes what is shown.
    """

    lead: list[str]
    parameters: int
    groups: list[tuple[str, list[Column]]]
    sources: Sequence[Row]
    limit: int
    scaling: bool
    cells: Callable[[Row], list[Cell]]

    @cached_property
    def rows(self) -> list[list[Cell]]:
        """All rows."""
        return [self.cells(row) for row in self.sources]

    @cached_property
    def head(self) -> list[list[Cell]]:
        """The rows in the page's HTML."""
        return [self.cells(row) for row in self.sources[: self.limit]]

    @property
    def stated(self) -> bool:
        """Whether intervals are what a source states instead of over repeats."""
        return any(row.get("stated") for row in self.sources)

    @property
    def left_out(self) -> int:
        """Rows that do not."""
        return max(len(self.sources) - self.limit, 0)


def point_table(results: ExperimentResults, limit: int, scaling: bool | None = None) -> Table:
    """Points, with efficiency if ``scaling`` (None: where what they scale over varies along a
    series; layouts of a published sweep may have a series each)."""
    if scaling is None:
        scaling = any(len(series.rows) > 1 for series in results.series)
    rows = _by_series(results) if scaling else results.points
    return table_of(results, rows, _value_columns(results, scaling), limit, scaling)


def table_of(
    results: ExperimentResults,
    rows: Sequence[Row],
    groups: list[tuple[str, list[Column]]],
    limit: int,
    scaling: bool = False,
) -> Table:
    """Points with what the columns of ``groups`` make of each row."""
    several = len(results.sources) > 1
    lead = [*(_heading(results, name) for name in results.columns), "Runs"]
    lead += ["Source"] if several else []
    columns = [column for _, part in groups for column in part]

    def cells(row: Row) -> list[Cell]:
        made: list[Cell | str] = [
            *(text_of(row.get(name)) for name in results.columns),
            _run_cell(results, row),
        ]
        made += [text_of(row.get("source"))] if several else []
        made += [column.make(row) for column in columns]
        return [Cell(cell) if isinstance(cell, str) else cell for cell in made]

    return Table(lead, len(results.columns), groups, rows, limit, scaling, cells)


def declared_table(
    results: ExperimentResults, rows: Sequence[Any], columns: Sequence[Shown], limit: int
) -> Table | None:
    """The rows of a declared table; None without any."""

    def cell(words: Callable[[Any], Cell | str]) -> Callable[[Row], Cell | str]:
        return lambda row: words(row[_DECLARED])

    shown = [Column(heading, cell(words), name) for heading, name, words in columns]
    sources = [{**row.cells, **row.row, _DECLARED: row} for row in rows]
    return table_of(results, sources, [("", shown)], limit) if rows else None


def share_text(share: Estimate | None) -> str:
    """A share with its interval; a dash where it is not known."""
    return percent(*numbers_of(share))


def _by_series(results: ExperimentResults) -> list[Row]:
    """Rows of the scaling table with holes among their series, at their place by scale."""
    places: dict[tuple[object, ...], int] = {}
    for row in results.scaling:
        places.setdefault(results.key(row, results.series_names), len(places))
    return sorted(
        results.scaling,
        key=lambda row: (
            places[results.key(row, results.series_names)],
            str(row.get("source") or "") if len(results.sources) > 1 else "",
            results.scale_of(row),
        ),
    )


def _heading(results: ExperimentResults, name: str) -> str:
    """Heading of a parameter's column, with its unit."""
    unit = parameter_of(results.entry, name).get("unit")
    # Axes of a mesh count ranks, as everybody who reads their names knows.
    plain_name = name == results.scale or name in results.entry.get("mesh", {}).values()
    return name if plain_name else f"{name} [{unit}]" if unit else name


def _run_cell(results: ExperimentResults, row: Row) -> Cell:
    """Finished runs of a point, of those planned, and what became of it if there are none.

    ``stated``: its interval is not over repeats, but from what the source states.
    """
    if "planned" not in row:
        return Cell("–")
    done, planned = int(row.get("repeats") or 0), int(row.get("planned") or 0)
    state = results.states.get(results.key(row))
    word = "" if state is None or done else state.word
    if state is not None and done and (stale := state.count(Status.STALE)):
        word = f"({stale} stale)"
    marked = done == 0 or bool(word)
    word = word or ("stated" if row.get("stated") else "")
    return Cell(f"{done}/{planned}{f' {word}' if word else ''}", marked)


def _value_columns(results: ExperimentResults, scaling: bool) -> list[tuple[str, list[Column]]]:
    """Columns of values by phase."""
    main = results.main
    if main is None:
        return []
    if main.metric == "total_throughput":
        names = ["total_throughput", "local_throughput" if scaling else "total_time"]
        shown = [results.measures[name] for name in names if name in results.measures]
    else:
        shown = [m for m in results.measures.values() if {*m.phases} & {*main.phases}]
    groups: list[tuple[str, list[Column]]] = []
    for phase in main.phases:
        columns = [_column(m.axis_label, m.metric, phase, _STATS, m.factor)
                   for m in shown[:MAX_MEASURES] if phase in m.phases]  # fmt: skip
        if scaling:
            # Next to what it is the efficiency of, before metrics that a narrow page cuts off.
            efficiency = _column("Efficiency", main.stem, phase, _SHARE, target=results.target)
            speedup = _column("Speedup", main.stem, phase, _SPEEDUP)
            rates = any(finite(row.get(speedup.name)) for row in results.scaling)  # not of a rank
            columns[1:1] = [efficiency, *([speedup] if rates else [])]
        groups.append((PHASES[phase], columns))
    return groups


_STATS, _SHARE, _SPEEDUP = (
    ("mean", "low", "high"),
    ("eff", "eff_low", "eff_high"),
    ("speedup", "speedup_low", "speedup_high"),
)


def _column(
    heading: str,
    metric: str,
    phase: str,
    stats: Sequence[str],
    factor: float = 1.0,
    target: float | None = None,
) -> Column:
    """A column of values with their intervals; with a ``target`` shares, bad if clearly under."""
    names = [column(metric, stat, phase) for stat in stats]

    def make(row: Row) -> Cell:
        value, low, high = (row[n] * factor if finite(row.get(n)) else None for n in names)
        if target is None:
            return Cell(with_interval(value, low, high))
        return Cell(percent(value, low, high), high is not None and high < target)

    return Column(heading, make, names[0])
