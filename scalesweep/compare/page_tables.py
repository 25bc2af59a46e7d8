"""Tables of the page: their cells, with what each is sorted by."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalesweep.compare.environment_diff import Surroundings
from scalesweep.compare.matching import Joined, Pair, by_experiment, varying
from scalesweep.compare.significance import IMPROVED, VERDICTS, WORSE, Cell, Change, Count
from scalesweep.core.formatting import (
    PHASES,
    finite,
    listed,
    number,
    scaled_unit,
    text_of,
    with_interval,
)
from scalesweep.experiment.cells import Text, headings, number_cell, table

FOLDER = "compare"  # of the tables, next to the page
# What one page may hold; the rest is in the CSV files.
MAX_ROWS, MAX_ALONE, MAX_COLUMNS, MAX_FACTS = 1500, 200, 6, 60
_MARKS = {IMPROVED: "▲", WORSE: "▼"}


def _title(counted: Count | Change) -> str:
    unit = "" if counted.quantity.unit in ("", "1") else f" [{counted.quantity.unit}]"
    return f"{counted.quantity.label}{unit}, {PHASES[counted.phase]}"


def _table(
    label: str,
    head: Sequence[Text],
    rows: Sequence[Sequence[Text]],
    of: int = 0,
    more: tuple[str, str] = ("row", ""),
) -> dict[str, Any]:
    """What the template makes a table of; ``of`` rows there are in all, of which ``more`` tells
    what they are and the file that has them."""
    return table(label, head, rows, of, (more[0], f"{FOLDER}/{more[1]}"))


def count_table(summary: Iterable[Count]) -> dict[str, Any]:
    """Verdicts by experiment, metric and phase."""
    numbers = [*(verdict.capitalize() for verdict in VERDICTS)]
    numbers += ["By chance", "Corrected", "Geometric mean"]
    head = headings("Experiment", "Metric", "Better", *numbers, numbers=numbers)
    return _table("Verdicts by experiment and metric", head, [*map(_count_row, summary)])


def _count_row(count: Count) -> list[Text]:
    kept = sum(count.kept.values())
    cells = [Text(count.experiment), Text(_title(count)), Text(count.quantity.better)]
    cells += [
        number_cell(count.verdicts[verdict], str(count.verdicts[verdict])) for verdict in VERDICTS
    ]
    cells += [
        number_cell(count.by_chance, number(count.by_chance, 2)),
        number_cell(kept, str(kept)),
    ]
    mean = count.overall
    if mean is None:
        return [*cells, number_cell(math.nan, "–")]
    return [*cells, number_cell(mean.value, with_interval(mean.value, mean.low, mean.high))]


def difference_table(around: Surroundings) -> dict[str, Any]:
    """Facts that are not the same on both sides."""
    differences = around.differences
    rows = [
        [Text(cell) for cell in (d.fact, d.kind, d.base, d.new)] for d in differences[:MAX_FACTS]
    ]
    head = headings("Fact", "About", "Base", "New")
    more = ("difference", "environment.csv")
    return _table("Differences between the sides", head, rows, len(differences), more)


def labels(changes: Sequence[Change]) -> list[str]:
    """Names of points: their experiment, where there are several, and what varies in it."""
    names: dict[str, list[str]] = {
        name: varying(pairs) for name, pairs in by_experiment(change.pair for change in changes)
    }
    several = len(names) > 1
    alike = len({change.pair.source for change in changes}) == 1
    said = []
    for change in changes:
        point = change.pair.point
        parts = [change.pair.experiment] if several else []
        parts += [_named(name, point.values.get(name)) for name in names[change.pair.experiment]]
        mark = "" if alike or change.pair.source == "measured" else f" ({change.pair.source})"
        said.append((", ".join(parts) or "the only point") + mark)
    return said


def _named(name: str, value: Any) -> str:
    return f"{name} {text_of(value)}"


def _parameter_cells(names: Sequence[str], pair: Pair) -> list[Text]:
    """Cells of the varying parameters; many of them share one."""
    values = [pair.point.values.get(name) for name in names]
    if not names:
        return [Text("the only point")]
    if len(names) > MAX_COLUMNS:
        return [Text(", ".join(map(_named, names, values)))]
    return [
        number_cell(value, text_of(value)) if finite(value) else Text(text_of(value))
        for value in values
    ]


def _parameter_headings(names: Sequence[str], pairs: Sequence[Pair]) -> list[Text]:
    if not names or len(names) > MAX_COLUMNS:
        return headings("Point")
    numbers = [n for n in names if all(finite(pair.point.values.get(n)) for pair in pairs)]
    return headings(*names, numbers=numbers)


def point_table(
    name: str, pairs: Sequence[Pair], changes: Sequence[Change], limit: int
) -> dict[str, Any]:
    """Every metric of the joined points of an experiment, the main one first."""
    names = varying(pairs)
    ordered = sorted(changes, key=lambda change: not change.main)
    scales = _scales(ordered)
    sources = list(dict.fromkeys(pair.source for pair in pairs))
    rows = []
    for change in ordered[:limit]:
        factor, unit = scales[change.metric]
        label = (
            f"{change.quantity.label} [{unit}]" if unit not in ("", "1") else change.quantity.label
        )
        rows.append(
            [
                *_parameter_cells(names, change.pair),
                *([Text(change.pair.source)] if len(sources) > 1 else []),
                Text(label),
                Text(PHASES[change.phase]),
                _cell(change.base, factor),
                _cell(change.new, factor),
                number_cell(change.ratio, with_interval(change.ratio, change.low, change.high)),
                _verdict(change),
                number_cell(change.adjusted, _p(change.adjusted)),
            ]
        )
    numbers = ("Base", "New", "Ratio", "p, corrected")
    columns = _parameter_headings(names, pairs)
    columns += headings("Source") if len(sources) > 1 else []
    columns += headings("Metric", "Phase", "Base", "New", "Ratio", "Verdict", numbers=numbers)
    columns += headings(numbers[-1], numbers=numbers)
    more = ("row", "points.csv")
    values = pairs[0].point.values
    sides = [listed([*dict.fromkeys(_names(pairs, role))], 4) for role in ("base", "new")]
    return {
        "name": name,
        "benchmark": listed([*dict.fromkeys(f"{b}, version {v}" for b, v in _kinds(pairs))], 4),
        "called": None if sides[0] == sides[1] else sides,
        "points": len(pairs),
        "source": sources[0] if len(sources) == 1 else None,
        "table": _table(f"Points of {name}", columns, rows, len(ordered), more),
        "same": {n: text_of(v) for n, v in values.items() if n not in names},
    }


def _kinds(pairs: Iterable[Pair]) -> list[tuple[str, int]]:
    return [pair.point.kind for pair in pairs]


def _names(pairs: Iterable[Pair], role: str) -> list[str]:
    return [
        name
        for pair in pairs
        if (point := pair.base if role == "base" else pair.new)
        for name in point.experiments
    ]


def _scales(changes: Iterable[Change]) -> Mapping[str, tuple[float, str]]:
    """Factor and unit that make each metric readable."""
    largest: dict[str, tuple[str, float]] = {}
    for change in changes:
        means = [abs(cell.mean) for cell in (change.base, change.new) if finite(cell.mean)]
        before = largest.get(change.metric, (change.quantity.unit, 0.0))[1]
        largest[change.metric] = (change.quantity.unit, max([before, *means]))
    return {metric: scaled_unit(unit, top) for metric, (unit, top) in largest.items()}


def _cell(cell: Cell, factor: float) -> Text:
    low, high = cell.low * factor, cell.high * factor
    shown = with_interval(cell.mean * factor, low, high)
    return number_cell(cell.mean, f"{shown} (1)" if cell.repeats == 1 else shown)


def _verdict(change: Change) -> Text:
    kind = {IMPROVED: "good", WORSE: "bad"}.get(change.verdict, "")
    words = (
        f"{_MARKS[change.verdict]} {change.verdict}" if change.verdict in _MARKS else change.verdict
    )
    if change.reason and math.isnan(change.low):
        words = f"{change.verdict}: {change.reason}" if change.verdict not in _MARKS else words
    return Text(words, change.verdict, kind)


def _p(value: float) -> str:
    if not finite(value):
        return "–"
    return "< 0.0001" if value < 0.0001 else number(value, 2)


def names_of_points(joined: Joined) -> dict[str, list[str]]:
    """By experiment the parameters that distinguish its points, on either side."""
    pairs = [*joined.both, *joined.unmatched, *joined.versions]
    return {name: varying(group) for name, group in by_experiment(pairs)}


def alone_table(role: str, joined: Joined) -> dict[str, Any]:
    """Points of one side only, with what became of them on the other."""
    mine = [pair for pair in joined.unmatched if (pair.base is not None) == (role == "base")]
    words = names_of_points(joined)
    rows = [
        [
            Text(pair.experiment),
            Text(f"{pair.point.kind[0]}, version {pair.point.kind[1]}"),
            Text(_point_words(pair, words[pair.experiment])),
            Text(pair.point.source),
            number_cell(len(pair.point.rows), str(len(pair.point.rows))),
            Text(pair.why),
        ]
        for pair in mine[:MAX_ALONE]
    ]
    head = headings(
        "Experiment", "Benchmark", "Point", "Source", "Runs", "On the other side", numbers=("Runs",)
    )
    table = _table(f"Points only in {role}", head, rows, len(mine), ("point", "unmatched.csv"))
    return {"role": role, "count": len(mine), **table}


def _point_words(pair: Pair, names: Sequence[str]) -> str:
    values = pair.point.values
    return ", ".join(_named(name, values.get(name)) for name in names) or "the only point"


def version_table(joined: Joined) -> dict[str, Any]:
    """Points that are equal in all but the version of the benchmark."""
    words, pairs = names_of_points(joined), joined.versions
    rows = []
    for pair in pairs[:MAX_ALONE]:
        versions = [str(point.kind[1]) if point else "–" for point in (pair.base, pair.new)]
        point = _point_words(pair, words[pair.experiment])
        rows.append([Text(pair.experiment), Text(pair.point.kind[0]), Text(point)])
        rows[-1] += [Text(version, version, "num") for version in versions]
    numbers = ("Version in base", "Version in new")
    head = headings("Experiment", "Benchmark", "Point", *numbers, numbers=numbers)
    more = ("point", "versions.csv")
    table = _table("Points with another version", head, rows, len(pairs), more)
    return {"count": len(pairs), **table}
