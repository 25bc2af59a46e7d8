"""Where the time of profiled runs goes, stacked, one bar for each point in the order of the scale:
shares and seconds by named part, and seconds by function."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.analysis.profile import OTHER
from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.core.formatting import counted, number, percent, scaled_unit, shorten
from scalesweep.core.profilers import NONE
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.figures.stacked import MAX_BARS, rows_by_bar, stacked_bars
from scalesweep.figures.style import (
    Drawing,
    caption,
    evenly,
    labels_of,
    left_out_words,
)

# Colours after Okabe and Ito; beyond them hatches tell parts apart. The rest is grey.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_HATCHES = ("", "////", "....", "xxxx")
_REST = ("#d5d9de", "")
_IN = " (built-in)"
# How cProfile writes what is not in Python.
_BUILT_IN = re.compile(r"^<built-in method (?:[\w.]*\.)?(\w+)>$")
_METHOD = re.compile(r"^<method '(\w+)' of '(?:[\w.]*\.)?(\w+)' objects>$")
MAX_NAMED = 8  # functions with a colour of their own
ROOM = 44  # characters of a function's name
# Kinds of functions whose times add up, and what they are of. Those of calls and ranges hold
# others.
_ADDED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "host": (("cpu",), "functions of the host"),
    "gpu": (("kernel", "copy"), "kernels and copies"),
}


def part_figures(results: ExperimentResults) -> list[Drawing]:
    """Shares of the time of a rank by part; none without profiles."""
    groups = rows_by_bar(results, "parts", "share")
    if not groups:
        return []
    scaled = results.scale in results.axes
    bars = sorted(groups, key=lambda rows: results.scale_of(rows[0]) if scaled else 0)
    chosen = evenly(bars, MAX_BARS)
    looks = _looks(list(dict.fromkeys(str(row["part"]) for rows in chosen for row in rows)))
    head = f"{results.name}: share of time by part{results.mark}"
    figure, ax = stacked_bars(
        head,
        labels_of(results, [rows[0] for rows in chosen], 44),
        [{str(row["part"]): 100 * row["share"] for row in rows} for rows in chosen],
        looks,
        {shorten(name.replace("_", " "), 24): look for name, look in looks.items()},
        (0.0, 100.0),
    )
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel("Share of the time of a rank [%]")
    text = caption(
        results, [rows[0] for rows in groups], [],
        "Means over ranks and repeats; the table has the intervals.",
        f"Parts are named by patterns, the benchmark's own or those by default; {OTHER}: what none "
        "of them takes.",
        left_out_words(len(groups) - len(chosen)),
    )  # fmt: skip
    largest = max((row for rows in chosen for row in rows), key=lambda row: float(row["share"]))
    alt = (
        f"{head}: {counted(len(chosen), 'bar')}. The largest part is {largest['part']} at "
        f"{results.describe(largest)}: {percent(largest['share'])} of its bar."
    )
    drawings = [Drawing("parts-share", head, text, alt, figure)]
    if scaled and len(chosen) > 1:
        drawings.append(_part_times(results, chosen, looks, len(groups)))
    return drawings


def _part_times(
    results: ExperimentResults,
    bars: Sequence[list[Row]],
    looks: dict[str, tuple[str, str]],
    points: int,
) -> Drawing:
    """The same in seconds: how each part grows with the scale."""
    totals = [sum(row["seconds"] for row in rows) for rows in bars]
    factor, unit = scaled_unit("s", max(totals))
    head = f"{results.name}: time by part over {results.scale}{results.mark}"
    figure, ax = stacked_bars(
        head,
        labels_of(results, [rows[0] for rows in bars], ROOM),
        [{str(row["part"]): factor * row["seconds"] for row in rows} for rows in bars],
        looks,
        {shorten(name.replace("_", " "), 24): look for name, look in looks.items()},
        (0.0, factor * max(totals)),
    )
    ax.set_xlabel(f"Time of a rank [{unit}]")
    text = caption(
        results, [rows[0] for rows in bars], [],
        "Means over ranks and repeats; the table has the intervals.",
        left_out_words(points - len(bars)),
    )  # fmt: skip
    ends = [f"{number(factor * totals[place])} {unit} at {results.describe(bars[place][0])}"
            for place in (0, -1)]  # fmt: skip
    return Drawing("parts-time", head, text, f"{head}: from {ends[0]} to {ends[1]}.", figure)


@dataclass(frozen=True)
class _Bar:
    """The functions of a point: own seconds of a rank by function, and of all of them."""

    row: Row
    seconds: Mapping[tuple[str, str], float]
    whole: float


def function_figures(results: ExperimentResults) -> list[Drawing]:
    """Own time of the functions that take longest by point, in order of the scale; none of a single
    point, of which the page has a table."""
    rows = results.of(FunctionTime)
    drawings = []
    for name, (kinds, words) in _ADDED.items():
        alike = [row for row in rows if row.kind in kinds]
        # What one profiler calls a function is not what another does: the first that has bars.
        for profiler in dict.fromkeys(row.profiler for row in alike):
            bars = _bars(results, [row for row in alike if row.profiler == profiler])
            if len(bars) > 1:
                drawings.append(_functions(results, name, words, bars))
                break
    return drawings


def _bars(results: ExperimentResults, rows: Sequence[FunctionTime]) -> list[_Bar]:
    """What each point has, means over its profiled runs."""
    points: dict[Key, dict[str, list[FunctionTime]]] = {}
    for row in rows:
        runs = points.setdefault(results.key(row.point, results.axes), {})
        runs.setdefault(row.run_id, []).append(row)
    bars = [_bar(list(runs.values())) for runs in points.values()]
    scaled = results.scale in results.axes
    known = [bar for bar in bars if bar.whole > 0]
    return sorted(known, key=lambda bar: results.scale_of(bar.row) if scaled else 0)


def _bar(runs: Sequence[Sequence[FunctionTime]]) -> _Bar:
    """A point's bar from the functions of each of its runs."""
    seconds: dict[tuple[str, str], float] = {}
    whole = 0.0
    for functions in runs:
        totals: dict[str, float] = {}  # of a kind: its rows are only those that took longest
        for row in functions:
            key = (row.function, row.place)
            seconds[key] = seconds.get(key, 0.0) + row.own_s / len(runs)
            if row.share:
                totals[row.kind] = row.own_s / row.share
        whole += sum(totals.values()) / len(runs)
    first = runs[0][0]
    source = "imported" if first.profiler == NONE else "measured"
    return _Bar({**first.point, "source": source, "repeats": len(runs)}, seconds, whole)


def _functions(results: ExperimentResults, name: str, words: str, every: Sequence[_Bar]) -> Drawing:
    """One figure of functions of one sort."""
    bars = evenly(every, MAX_BARS)
    largest: dict[tuple[str, str], float] = {}
    for bar in bars:
        for function, seconds in bar.seconds.items():
            largest[function] = max(largest.get(function, 0.0), seconds / bar.whole)
    named = sorted(largest, key=lambda function: (-largest[function], function))[:MAX_NAMED]
    titles = dict(zip(named, _titles(named), strict=True))
    looks = _looks([*titles.values(), OTHER])
    factor, unit = scaled_unit("s", max(bar.whole for bar in bars))
    head = f"{results.name}: {words} over {results.scale}{results.mark}"
    if results.scale not in results.axes:
        head = f"{results.name}: {words} by point{results.mark}"
    parts = [
        {
            **{titles[function]: factor * bar.seconds.get(function, 0.0) for function in named},
            OTHER: factor * (bar.whole - sum(bar.seconds.get(each, 0.0) for each in named)),
        }
        for bar in bars
    ]
    figure, ax = stacked_bars(
        head,
        labels_of(results, [bar.row for bar in bars], ROOM),
        [{part: max(value, 0.0) for part, value in bar.items()} for bar in parts],
        looks,
        looks,
        (0.0, factor * max(bar.whole for bar in bars)),
    )
    ax.set_xlabel(f"Own time of a rank [{unit}]")
    said = [
        f"{OTHER}: all functions but these; the table functions has more, with whole names.",
        left_out_words(len(every) - len(bars)),
    ]
    if bars[0].row["source"] == "imported":
        text = caption(results, [bar.row for bar in bars], [], "Means over ranks.", *said)
    else:
        sentence = "One run per point under cProfile, which takes time itself; means over ranks."
        text = " ".join([sentence, *filter(None, said)])
    first = named[0]
    top = max(bars, key=lambda bar: bar.seconds.get(first, 0.0) / bar.whole)
    alt = (
        f"{head}: {counted(len(bars), 'bar')}. The largest share has {titles[first]}: "
        f"{percent(largest[first])} at {results.describe(top.row)}."
    )
    return Drawing(f"functions-{name}", head, text, alt, figure)


def _titles(functions: Sequence[tuple[str, str]]) -> list[str]:
    """Short names of functions, no two alike: without a return type and the arguments of
    templates, with the file of what is in Python."""
    titles: list[str] = []
    for function, place in functions:
        name = _BUILT_IN.sub(rf"\1{_IN}", function.removeprefix("void "))
        name = _METHOD.sub(rf"\2.\1{_IN}", name)
        plain, *more = re.split(r"(?=[<(])", name, maxsplit=1)
        if more and plain and not place and not name.endswith(_IN):
            name = f"{plain}<…>" if more[0].startswith("<") else plain
        file = place.rpartition("/")[2]
        title = shorten(f"{name}, {file}" if file else name, ROOM)
        count = sum(each.partition(" #")[0] == title for each in titles)
        titles.append(f"{title} #{count + 1}" if count else title)
    return titles


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
