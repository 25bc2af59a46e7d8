"""The table of an experiment's points as the report shows it: compact, for people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scalesweep.presentation import PHASES, finite, percent, text_of, with_interval
from scalesweep.quantities import column
from scalesweep.study import Measure, Row, Study

MAX_MEASURES = 4


_Column = tuple[str, Callable[[Row], "Cell"]]


@dataclass(frozen=True)
class Cell:
    """Text of a cell; ``bad`` marks an efficiency clearly under 80 % or a missing result."""

    text: str
    bad: bool = False


@dataclass(frozen=True)
class Table:
    """Headings in two levels, rows, and what was left out.

    ``lead`` are the headings that stand alone (the first ``parameters`` of them parameters);
    ``groups`` are (heading, sub-headings) of the values; an empty heading is none.
    """

    lead: list[str]
    parameters: int
    groups: list[tuple[str, list[str]]]
    rows: list[list[Cell]]
    left_out: int
    scaling: bool


def point_table(study: Study, limit: int) -> Table:
    """Points (with efficiency where what they scale over varies), at most ``limit`` rows.

    Rows left out are the last ones; the CSV has all.
    """
    scaling = bool(study.series)
    rows = _by_series(study) if scaling else study.points
    groups = _value_columns(study, scaling)
    headings = [(phase, [heading for heading, _ in columns]) for phase, columns in groups]
    makers = [make for _, columns in groups for _, make in columns]
    return table_of(study, rows, makers, headings, limit, scaling)


def table_of(
    study: Study,
    rows: Sequence[Row],
    makers: Sequence[Callable[[Row], Cell]],
    headings: Sequence[tuple[str, list[str]]],
    limit: int,
    scaling: bool = False,
) -> Table:
    """Points with what ``makers`` make of each row, under ``headings``; at most ``limit`` rows."""
    several = len(study.sources) > 1
    lead = [*(_heading(study, name) for name in study.axes), "Runs"]
    lead += ["Source"] if several else []
    body = []
    for row in rows[:limit]:
        cells = [Cell(text_of(row.get(name))) for name in study.axes]
        cells.append(_run_cell(study, row))
        cells += [Cell(text_of(row.get("source")))] if several else []
        body.append(cells + [make(row) for make in makers])
    left_out = len(rows) - len(body)
    return Table(lead, len(study.axes), list(headings), body, left_out, scaling)


def _by_series(study: Study) -> list[Row]:
    """Rows of the scaling table with holes among their series, at their place by scale."""
    places: dict[tuple[object, ...], int] = {}
    for row in study.scaling:
        places.setdefault(study.key(row, study.series_names), len(places))
    return sorted(
        study.scaling,
        key=lambda row: (
            places[study.key(row, study.series_names)],
            str(row.get("source") or "") if len(study.sources) > 1 else "",
            study.scale_of(row),
        ),
    )


def _heading(study: Study, name: str) -> str:
    """Heading of a parameter's column, with its unit."""
    unit = (study.plan["parameters"].get(name) or {}).get("unit")
    return name if name == study.scale else f"{name} [{unit}]" if unit else name


def _run_cell(study: Study, row: Row) -> Cell:
    """Finished runs of a point, of those planned, and what became of it if there are none."""
    done, planned = int(row.get("repeats") or 0), int(row.get("planned") or 0)
    state = study.states.get(study.key(row))
    word = "" if state is None or done else state.word
    return Cell(f"{done}/{planned}{f' {word}' if word else ''}", done == 0)


def _value_columns(study: Study, scaling: bool) -> list[tuple[str, list[_Column]]]:
    """Columns of values by phase."""
    main = study.main
    if main is None:
        return []
    if main.metric == "total_throughput":
        names = ["total_throughput", "local_throughput" if scaling else "total_time"]
        shown = [study.measures[name] for name in names if name in study.measures]
    else:
        alike = [m for m in study.measures.values() if set(m.phases) & set(main.phases)]
        shown = alike[:MAX_MEASURES]
    groups: list[tuple[str, list[_Column]]] = []
    for phase in main.phases:
        columns: list[_Column] = [
            (m.axis_label, _value_maker(m, phase)) for m in shown if phase in m.phases
        ]
        if scaling:
            stem = "total" if main.metric == "total_throughput" else main.metric
            columns.append(("Efficiency", _efficiency_maker(stem, phase)))
        groups.append((PHASES[phase], columns))
    return groups


def _value_maker(measure: Measure, phase: str) -> Callable[[Row], Cell]:
    def make(row: Row) -> Cell:
        value, low, high = (measure.value(row, stat, phase) for stat in ("mean", "low", "high"))
        return Cell(with_interval(value, low, high))

    return make


def _efficiency_maker(stem: str, phase: str) -> Callable[[Row], Cell]:
    names = [column(f"{stem}_{part}", "", phase) for part in ("eff", "eff_low", "eff_high")]

    def make(row: Row) -> Cell:
        value, low, high = (row.get(name) for name in names)
        return Cell(percent(value, low, high), finite(high) and high < 0.8)

    return make
