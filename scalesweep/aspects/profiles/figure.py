"""Where the time of profiled runs goes, stacked, one bar for each point in the order of the scale:
shares by named part, and seconds by function."""

import re
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from scalesweep.analysis.profile import OTHER
from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.aspects.profiles.table import PartTime
from scalesweep.core.formatting import shorten
from scalesweep.core.profilers import NONE
from scalesweep.experiment.by_kind import by_kind
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.stacked import Bar, point_bars

# How cProfile writes what is not in Python.
_BUILT_IN = re.compile(r"^<(?:built-in method|method) '?(?:[\w.]*\.)?(\w+)'?.*>$")
MAX_NAMED = 8  # functions with a colour of their own
ROOM = 44  # characters of a function's name
# Kinds of functions whose times add up, and what they are of. Those of calls and ranges hold
# others.
_ADDED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "host": (("cpu",), "functions of the host"),
    "gpu": (("kernel", "copy"), "kernels and copies"),
}
_NOTE = f"Parts are named by patterns; {OTHER}: what none of them takes."


def part_figures(results: ExperimentResults) -> list[Drawing]:
    """Shares of the time of a rank by part; none without profiles."""
    known = by_kind(results, results.of(PartTime), "part", "share")
    shares = [Bar(row, {name: 100 * share for name, share in parts.items() if share > 0})
              for row, parts in known]  # fmt: skip
    what, axis = "share of time by part", "Share of the time of a rank"
    return _bars(results, "parts-share", what, axis, "%", shares)


def function_figures(results: ExperimentResults) -> list[Drawing]:
    """Own time of the functions that take longest by point, in order of the scale; none of a single
    point, of which the page has a table."""
    drawings: list[Drawing] = []
    for name, (kinds, words) in _ADDED.items():
        alike = [row for row in results.of(FunctionTime) if row.kind in kinds]
        # What one profiler calls a function is not what another does: the first that has bars.
        for profiler in dict.fromkeys(row.profiler for row in alike):
            bars = _functions(results, [row for row in alike if row.profiler == profiler])
            if len(bars) > 1:
                what = f"{words} over {results.scale}"
                axis = "Own time of a rank"
                drawings += _bars(results, f"functions-{name}", what, axis, "s", bars)
                break
    return drawings


def _functions(results: ExperimentResults, rows: Sequence[FunctionTime]) -> list[Bar]:
    """Own seconds of the functions that take the largest shares, and of all others, by point; means
    over its profiled runs."""
    points: dict[Key, Row] = {}
    records = []
    for row in rows:
        source = "imported" if row.profiler == NONE else "measured"
        key = results.key(row.point, results.axes)
        points.setdefault(key, {**row.point, "source": source, "repeats": 1})
        whole = row.own_s / row.share if row.share else 0.0
        records.append((key, row.run_id, row.kind, title_of(row), row.own_s, whole))
    frame = pd.DataFrame(records, columns=["point", "run", "kind", "title", "own", "whole"])
    runs = frame.groupby("point")["run"].nunique()
    own = frame.pivot_table(index="point", columns="title", values="own", aggfunc="sum")
    own = own.div(runs, axis=0).fillna(0.0)
    wholes = frame.groupby(["point", "run", "kind"])["whole"].max().groupby("point").sum() / runs
    named = own.div(wholes, axis=0).max().nlargest(MAX_NAMED).index
    bars = []
    for key, point in points.items():
        parts = {str(title): float(own.loc[[key], title].iloc[0]) for title in named}
        rest = float(wholes.loc[[key]].iloc[0]) - sum(parts.values())
        if sum(parts.values()) > 0:
            bars.append(Bar(point, {**parts, OTHER: max(rest, 0.0)}))
    return bars


def _bars(
    results: ExperimentResults, name: str, what: str, axis: str, unit: str, bars: Iterable[Bar]
) -> list[Drawing]:
    """Bars in the order of the scale; what no pattern takes is grey."""
    scaled = results.scale in results.axes
    ordered = sorted(bars, key=lambda bar: results.scale_of(bar.row) if scaled else 0)
    words = {part: shorten(part.replace("_", " "), ROOM) for bar in ordered for part in bar.parts}
    note = f"Means over ranks and runs. {_NOTE}"
    return point_bars(
        results, name, what, axis, unit, ordered, {OTHER: ("#d5d9de", "")}, words, note
    )


def title_of(row: FunctionTime) -> str:
    """A short name: without a return type and the arguments of templates, with the file of what is
    in Python."""
    name = _BUILT_IN.sub(r"\1 (built-in)", row.function.removeprefix("void "))
    if not row.place and not name.endswith("(built-in)"):
        name = re.split(r"(?<=.)[<(]", name, maxsplit=1)[0]
    file = row.place.rpartition("/")[2]
    return shorten(f"{name}, {file}" if file else name, ROOM)


FIGURES = (part_figures, function_figures)
