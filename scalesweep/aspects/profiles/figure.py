"""Where the time of profiled runs goes, stacked, one bar for each point in the order of the scale:
shares and seconds by named part, and seconds by function."""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from scalesweep.analysis.profile import OTHER
from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.core.formatting import counted, percent, scaled_unit, shorten
from scalesweep.core.profilers import NONE
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.stacked import MAX_BARS, rows_by_bar, stacked_bars
from scalesweep.figures.style import Drawing, caption, evenly, labels_of, left_out_words

# Colours after Okabe and Ito; beyond them hatches tell parts apart. The rest is grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_HATCHES = ("", "////", "....", "xxxx")
_REST = ("#d5d9de", "")
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
    """Shares of the time of a rank by part, and seconds over the scale; none without profiles."""
    every = rows_by_bar(results, "parts", "share")
    scaled = results.scale in results.axes
    every.sort(key=lambda rows: results.scale_of(rows[0]) if scaled else 0)
    bars = [(rows[0], {str(r["part"]): 100 * r["share"] for r in rows}) for rows in every]
    seconds = [(rows[0], {str(r["part"]): r["seconds"] for r in rows}) for rows in every]
    head = f"{results.name}: share of time by part{results.mark}"
    if not bars:
        return []
    drawings = [_bars(results, "parts-share", head, "Share of the time of a rank [%]", bars, 1.0)]
    if scaled and len(bars) > 1:
        head = f"{results.name}: time by part over {results.scale}{results.mark}"
        drawings.append(_bars(results, "parts-time", head, "Time of a rank", seconds))
    return drawings


def function_figures(results: ExperimentResults) -> list[Drawing]:
    """Own time of the functions that take longest by point, in order of the scale; none of a single
    point, of which the page has a table."""
    drawings = []
    for name, (kinds, words) in _ADDED.items():
        alike = [row for row in results.of(FunctionTime) if row.kind in kinds]
        # What one profiler calls a function is not what another does: the first that has bars.
        for profiler in dict.fromkeys(row.profiler for row in alike):
            bars = _functions(results, [row for row in alike if row.profiler == profiler])
            if len(bars) > 1:
                head = f"{results.name}: {words} over {results.scale}{results.mark}"
                drawings.append(
                    _bars(results, f"functions-{name}", head, "Own time of a rank", bars)
                )
                break
    return drawings


def _functions(
    results: ExperimentResults, rows: Sequence[FunctionTime]
) -> list[tuple[Row, dict[str, float]]]:
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
            bars.append((point, {**parts, OTHER: max(rest, 0.0)}))
    scaled = results.scale in results.axes
    return sorted(bars, key=lambda bar: results.scale_of(bar[0]) if scaled else 0)


def _bars(
    results: ExperimentResults,
    name: str,
    head: str,
    axis: str,
    every: Sequence[tuple[Row, Mapping[str, float]]],
    factor: float | None = None,
) -> Drawing:
    """A figure of bars: shares (``factor`` 1), or seconds in a unit that fits."""
    bars = evenly(every, MAX_BARS)
    longest = max((sum(parts.values()) for _, parts in bars), default=1.0)
    if factor is None:
        factor, unit = scaled_unit("s", longest)
        axis = f"{axis} [{unit}]"
    names = list(dict.fromkeys(part for _, parts in bars for part in parts))
    looks = _looks(names)
    scaled = [{part: factor * value for part, value in parts.items()} for _, parts in bars]
    points = [point for point, _ in bars]
    legend = {shorten(each.replace("_", " "), ROOM): look for each, look in looks.items()}
    labels = labels_of(results, points, ROOM)
    figure, ax = stacked_bars(head, labels, scaled, looks, legend, (0.0, factor * longest))
    ax.set_xlabel(axis)
    left_out = left_out_words(len(every) - len(bars))
    text = caption(results, points, [], "Means over ranks and runs.", _NOTE, left_out)
    point, parts = max(bars, key=lambda bar: max(bar[1].values()) / sum(bar[1].values()))
    largest = max(parts, key=lambda part: parts[part])
    share = percent(parts[largest] / sum(parts.values()))
    alt = (
        f"{head}: {counted(len(bars), 'bar')}. The largest share has {largest} at "
        f"{results.describe(point)}: {share}."
    )
    return Drawing(name, head, text, alt, figure)


def title_of(row: FunctionTime) -> str:
    """A short name: without a return type and the arguments of templates, with the file of what is
    in Python."""
    name = _BUILT_IN.sub(r"\1 (built-in)", row.function.removeprefix("void "))
    if not row.place and not name.endswith("(built-in)"):
        name = re.split(r"(?<=.)[<(]", name, maxsplit=1)[0]
    file = row.place.rpartition("/")[2]
    return shorten(f"{name}, {file}" if file else name, ROOM)


def _looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and hatch by part."""
    count = len(_COLOURS)
    known = [name for name in names if name != OTHER]
    looks = {
        name: (_COLOURS[place % count], _HATCHES[place // count % len(_HATCHES)])
        for place, name in enumerate(known)
    }
    return looks | ({OTHER: _REST} if OTHER in names else {})


FIGURES = (part_figures, function_figures)
