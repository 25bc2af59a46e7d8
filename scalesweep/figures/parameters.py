"""Figures over the parameters that vary: heat maps of two, panels of one; and of the control point,
of which none does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from scalesweep.core.formatting import PHASES, finite, text_of
from scalesweep.core.plan_format import parameter_of
from scalesweep.core.status import Status
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
    made = []
    for cells in groups.values():
        counts = [len(set(values)) for values in zip(*cells, strict=True)]
        made += [Plane(sides, rest, cells)] if 1 < min(counts) < len(cells) else []
    return made


def plane_figures(results: ExperimentResults) -> list[Drawing]:
    """The main metric over two parameters, a heat map for each phase."""
    plane, main = plane_of(results), results.main
    if plane is None or main is None or results.rows("best_layouts", ["layout"]):
        return []  # of layouts a plane has few of hundreds
    ranked = not any(parameter_of(results.entry, name).get("workload") for name in plane.sides)
    best = ("higher" if main.higher else "lower") if ranked else ""
    held = plane.words(results)
    note = "Each cell is one point, the mean over its repeats; outlined: the best drawn."
    drawings = []
    for phase in sorted(main.phases, key=lambda phase: phase != main.steady_phase):
        means = {key: main.value(row, "mean", phase) for key, row in plane.cells.items()}
        name = "heatmap" if phase == main.steady_phase else f"heatmap-{phase}"
        what = f"{main.label.lower()}, {PHASES[phase]}{f', {held}' if held else ''}"
        panels = _heat(results, plane, means, best, main.unit)
        drawings += drawn(results, name, what, note, panels)
    return drawings


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


def panels_of(
    results: ExperimentResults, name: str, phase: str, groups: Mapping[str, Sequence[Row]]
) -> list[Bars] | list[Lines]:
    """Points that differ in one parameter, by what they agree in: a line for each over numbers,
    which share a panel, else a panel of bars for each."""
    rows = {
        title: [_value(results, name, phase, row) for row in of] for title, of in groups.items()
    }
    axis = results.main.axis_label if results.main else ""
    if not results.numeric(name):
        return [Bars(pd.DataFrame(of), Axis(axis), title=title) for title, of in rows.items()]
    every = [{**row, "series": title} for title, of in rows.items() for row in of]
    alone = every if len(rows) == 1 else ()
    holes = {row["x"]: row["note"] for row in alone if row["y"] is None}
    frame = pd.DataFrame(every).drop(columns="label").astype({"y": float})
    frame = frame.sort_values("x", kind="stable")
    return [Lines(frame, Axis(results.label(name), "values"), Axis(axis, "zero"), "", holes)]


def _value(results: ExperimentResults, name: str, phase: str, row: Row) -> dict[str, Any]:
    """A point's value for a frame; its note says why there is none."""
    assert results.main is not None
    mean = results.main.value(row, "mean", phase)
    low, high = bounds(results.main, row, phase)
    label = ", ".join(text_of(row[each]) for each in (name, *results.followers.get(name, [])))
    note = "" if mean is not None else _word(results.states[results.key(row)])
    return {"x": row[name], "y": mean, "label": label, "value": mean, "low": low, "high": high,
            "note": note}  # fmt: skip
