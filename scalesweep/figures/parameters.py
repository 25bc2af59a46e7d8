"""Figures over the parameters that vary: heat maps and lines of two, a panel of one; and of the
control point, of which none does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from scalesweep.core.formatting import PHASES, finite, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.core.status import Status
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, PointState, Row
from scalesweep.experiment.timeline import timeline
from scalesweep.figures.drawing import Drawing, bounds, drawn
from scalesweep.figures.forms import Bars, Heat, Lines
from scalesweep.figures.theme import Axis

MAX_SIDE = 24


@dataclass(frozen=True)
class Plane:
    """Points that differ in two parameters alone: those of one source that agree in the rest."""

    sides: tuple[str, str]  # vertical, horizontal
    rest: list[str]
    cells: dict[Key, Row]  # finished points by their values of the two

    @property
    def row(self) -> Row:
        """A point of the plane."""
        return next(iter(self.cells.values()))

    def words(self, results: ExperimentResults) -> str:
        """At which values the other parameters are held."""
        held = [results.describe(self.row, self.rest)] if self.rest else []
        return ", ".join(held + ([str(self.row["source"])] if len(results.sources) > 1 else []))


def plane_of(results: ExperimentResults) -> Plane | None:
    """The plane that a figure shows: of two numbers if there are any, the one with most points.

    The scale is horizontal, names are vertical, where their labels have room. Points of a plane
    differ in both sides, some in one of them alone (else no two compare).
    """
    names = [name for name in results.leaders if name != results.scale]
    names += [results.scale] if results.scale in results.leaders else []
    words = [name for name in names if not results.numeric(name)]
    pairs = sorted(combinations(names, 2), key=lambda pair: sum(name in words for name in pair))
    for first, second in pairs:
        turned = second in words and first not in words
        planes = _planes(results, (second, first) if turned else (first, second))
        if planes:
            return max(planes, key=lambda plane: len(plane.cells))
    return None


def _planes(results: ExperimentResults, sides: tuple[str, str]) -> list[Plane]:
    main = results.main
    rest = [name for name in results.leaders if name not in sides]
    groups: dict[Key, dict[Key, Row]] = {}
    for row in results.points:
        phases = main.phases if main and row.get("repeats") else ()
        if main and any(main.value(row, "mean", phase) is not None for phase in phases):
            there = (*results.key(row, rest), row["source"])
            groups.setdefault(there, {})[results.key(row, sides)] = row
    return [Plane(sides, rest, cells) for cells in groups.values() if _tells(cells)]


def _tells(cells: Mapping[Key, Row]) -> bool:
    counts = [len(set(values)) for values in zip(*cells, strict=True)]
    return 1 < min(counts) < len(cells)


def plane_figures(results: ExperimentResults) -> list[Drawing]:
    """The main metric over two parameters: for each phase a heat map, and, of parameters other than
    the scale, a line for each value of one over the values of the other."""
    plane, main = plane_of(results), results.main
    if plane is None or main is None or results.rows("best_layouts", ["layout"]):
        return []  # of layouts a plane has few of hundreds
    ranked = not any(parameter_of(results.entry, name).get("workload") for name in plane.sides)
    best = ("higher" if main.higher else "lower") if ranked else ""
    held, (first, second) = plane.words(results), plane.sides
    note = "Each cell is one point, the mean over its repeats; outlined: the best drawn."
    maps, lines = [], []
    for phase in sorted(main.phases, key=lambda phase: phase != main.steady_phase):
        means = {key: main.value(row, "mean", phase) for key, row in plane.cells.items()}
        when = f"{PHASES[phase]}{f', {held}' if held else ''}"
        name = "heatmap" if phase == main.steady_phase else f"heatmap-{phase}"
        panels = _heat(results, plane, means, best, main.unit)
        maps += drawn(results, name, f"{main.label.lower()}, {when}", note, panels)
        if results.scale not in plane.sides and any(map(results.numeric, plane.sides)):
            turned = {key[::-1]: value for key, value in means.items()}
            both = [_lines(results, second, first, turned), _lines(results, first, second, means)]
            what = f"{main.label.lower()} by {first} and {second}, {when}"
            lines += drawn(results, f"groups-{phase}", what, "Each point is the mean over its "
                           "repeats.", both, columns=2)  # fmt: skip
    return maps + lines


def _lines(
    results: ExperimentResults, over: str, by: str, values: Mapping[Key, float | None]
) -> Lines:
    """A line for each value of ``by`` over those of ``over``, which come first in the keys."""
    frame = pd.DataFrame(
        {"x": x, "series": f"{by} {text_of(group)}", "y": values.get((x, group))}
        for x in results.values(over)
        for group in results.values(by)
    ).astype({"y": float})
    kind = "values" if results.numeric(over) else "linear"
    assert results.main is not None
    return Lines(frame, Axis(results.label(over), kind), Axis(results.main.axis_label))


def _heat(
    results: ExperimentResults,
    plane: Plane,
    values: Mapping[Key, float | None],
    best: str,
    unit: str,
) -> list[Heat]:
    """The heat map of ``values`` by the plane's sides, in a list; none without any."""
    words = _states(results, plane)
    sides: list[list[Any]] = []
    for place, name in enumerate(plane.sides):
        planned = [v for v in results.values(name) if any(key[place] == v for key in words)]
        finished = [v for v in planned if any(key[place] == v for key in plane.cells)]
        sides.append((planned if len(planned) <= MAX_SIDE else finished)[:MAX_SIDE])
    rows = [
        {"x": x, "y": y, "value": values.get((y, x)), "word": words.get((y, x), "")}
        for y in sides[0]
        for x in sides[1]
    ]
    if not any(finite(row["value"]) for row in rows):
        return []
    first, second = (Axis(results.label(name)) for name in plane.sides)
    return [Heat(pd.DataFrame(rows), second, first, unit, best=best)]


def _states(results: ExperimentResults, plane: Plane) -> dict[Key, str]:
    """What became of the planned cells of a plane: a cause, pending, excluded."""
    place = {name: i for i, name in enumerate(results.leaders)}
    wanted = results.key(plane.row, plane.rest)
    excluded = [results.key(entry["point"]) for entry in results.entry["excluded"]]
    every = {key: str(Status.EXCLUDED) for key in excluded}
    every |= {key: _word(s) for key, s in results.states.items()}
    return {
        (key[place[plane.sides[0]]], key[place[plane.sides[1]]]): word
        for key, word in every.items()
        if tuple(key[place[name]] for name in plane.rest) == wanted
    }


def _word(state: PointState) -> str:
    """What became of a point that has no value."""
    return "no value" if state.word == Status.DONE else state.word


def control_figures(results: ExperimentResults) -> list[Drawing]:
    """The values of the control point in order of start; none for other experiments."""
    main, line = results.main, timeline(results)
    if not results.control or main is None or not line.times:
        return []
    values = [value * main.factor for value in line.values]
    frame = pd.DataFrame({"x": range(1, len(values) + 1), "y": values, "style": "dots"})
    frame["series"] = [str(row.get("hosts") or "") for row in line.rows]
    start = Axis("Control run, in order of start")
    what = f"{main.label[:1].lower()}{main.label[1:]}, {PHASES[main.steady_phase]}"
    note = "The same point, measured throughout the campaign."
    return drawn(results, "control", what, note, [Lines(frame, start, Axis(main.axis_label))])


def single_panel(
    results: ExperimentResults,
    main: Measure,
    name: str,
    phase: str,
    points: Sequence[Row],
    title: str,
) -> Bars | Lines:
    """Points that differ in one parameter: lines over numbers, bars by names."""
    rows = [_value(results, main, name, phase, row) for row in points]
    frame = pd.DataFrame(rows)
    if not results.numeric(name):
        return Bars(frame, Axis(main.axis_label), title=title)
    holes = {row["x"]: row["note"] for row in rows if row["value"] is None}
    frame = frame.rename(columns={"value": "y"}).sort_values("x")
    return Lines(
        frame, Axis(results.label(name), "values"), Axis(main.axis_label, "zero"), title, holes
    )


def _value(
    results: ExperimentResults, main: Measure, name: str, phase: str, row: Row
) -> dict[str, Any]:
    """A point's value for a frame; its note says why there is none."""
    mean, (low, high) = main.value(row, "mean", phase), bounds(main, row, phase)
    label = ", ".join(text_of(row[each]) for each in (name, *results.named_with(name)))
    note = "" if mean is not None else _word(results.states[results.key(row)])
    return {"x": row[name], "label": label, "value": mean, "low": low,
            "high": high, "note": note}  # fmt: skip
