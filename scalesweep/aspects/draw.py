"""Figures of an experiment, from its tables. The only part that imports matplotlib.

Those of an experiment are drawn together, by a job of their own.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl

from scalesweep.aspects.comparisons.figure import comparison_figures, size_figures
from scalesweep.aspects.order import FIGURES
from scalesweep.aspects.registry import parts
from scalesweep.aspects.scaling.figure import scaling_figures
from scalesweep.core.files import replacing, write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.parallel import shared_map
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.control import control_figures
from scalesweep.figures.files import svg_text, write_pdf, write_png
from scalesweep.figures.heatmap import FIRST as FIRST_HEATMAP
from scalesweep.figures.heatmap import heatmap_figures
from scalesweep.figures.lines import group_figures, single_figures
from scalesweep.figures.missing import Failed, missing_entry, tried
from scalesweep.figures.style import RC, Drawing, Sketch, families
from scalesweep.figures.svg import tidy_svg

MANY_POINTS, MOST_FIGURES = 200, 15
# In falling order of what they tell of an experiment as a whole.
_KINDS = ("overview", "heatmap", "compare", "ratio", "scaling", "groups", "size")
_NUMBERED = re.compile(r"-(\d+)(-|$)")


def most_telling(sketches: Sequence[Sketch], points: int) -> list[Sketch]:
    """Of an experiment the sketches to be drawn, in their order.

    All of them unless it has ``MANY_POINTS``; then the ``MOST_FIGURES`` most telling, and the first
    heat map in any case. Later epochs go before first ones, and the first series (or plane) before
    further ones.
    """
    if points < MANY_POINTS:
        return list(sketches)
    places = sorted(range(len(sketches)), key=lambda place: (_rank(sketches[place]), place))
    chosen = set(places[:MOST_FIGURES])
    return [
        sketch
        for place, sketch in enumerate(sketches)
        if place in chosen or sketch.name == FIRST_HEATMAP
    ]


def _rank(sketch: Sketch) -> tuple[bool, bool, int]:
    kind = sketch.name.partition("-")[0]
    number = _NUMBERED.search(sketch.name)
    further = kind in ("scaling", "heatmap", "groups") and bool(number and int(number[1]) > 1)
    return further, sketch.name.endswith("-init"), _KINDS.index(kind)


def left_out_words(names: Sequence[str]) -> str:
    """What the report says of figures that were not drawn."""
    return (
        f"{counted(len(names), 'more figure')} of this experiment not drawn (first epochs, "
        f"further series or parameters): an experiment of {MANY_POINTS} points or more has the "
        f"{MOST_FIGURES} most informative figures of scaling, comparisons and heat maps. "
        "The tables have all points."
    )


FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"

_Maker = Callable[[ExperimentResults], list[Drawing]]
_Lister = Callable[[ExperimentResults], list[Sketch]]


def draw(results: ExperimentResults) -> list[Drawing]:
    """The figures that suit what the experiment varies, in the order a report shows them."""
    with _style():
        return [drawing for part in plan_figures(results).parts for drawing in part.draw()]


def _style() -> AbstractContextManager[None]:
    return mpl.rc_context(cast(Any, {**RC, "font.family": families()}))


@dataclass(frozen=True)
class Figures:
    """What is drawn of an experiment, and the names of the figures that are not."""

    results: ExperimentResults
    parts: list[Sketch]
    left_out: list[str]


def plan_figures(results: ExperimentResults) -> Figures:
    """Which figures an experiment gets; none is drawn yet."""
    sketches = listed(results)
    chosen = most_telling(sketches, len(results.states))
    kept = {sketch.name for sketch in chosen}
    parts = [*_each(results, [control_figures]), *chosen, *_each(results, _few(results))]
    return Figures(results, parts, [s.name for s in sketches if s.name not in kept])


def listed(results: ExperimentResults) -> list[Sketch]:
    """The figures of an experiment whose number grows with the parameters that vary."""
    return [sketch for listing in _many(results) for sketch in listing(results)]


def _each(results: ExperimentResults, makers: Sequence[_Maker]) -> list[Sketch]:
    return [Sketch(make.__name__, partial(make, results)) for make in makers]


def _many(results: ExperimentResults) -> list[_Lister]:
    """Kinds of figures whose number grows with the parameters that vary."""
    listers: list[_Lister] = []
    # Of layouts the aspect draws the best, and pairs that differ in one choice: a plane has few of
    # hundreds, and a mean would be over unlike ones.
    study = bool(results.rows("best_layouts", ["layout"]))
    if results.series and results.scale in results.leaders and not study:
        listers += [scaling_figures, size_figures]
    if len(results.leaders) > 1:
        listers += [*([] if study else [heatmap_figures, group_figures]), comparison_figures]
    return listers


def _few(results: ExperimentResults) -> list[_Maker]:
    """Kinds of which there are a few figures at most; drawn in any case."""
    alone = len(results.grid) == 1 and results.scale not in results.leaders
    of_aspects = (maker for module in parts("figure") for maker in module.FIGURES)
    places = {name: place for place, name in enumerate(FIGURES)}
    makers = sorted(of_aspects, key=lambda maker: places.get(maker.__name__, len(places)))
    return [*([single_figures] if alone else []), *makers]


@dataclass(frozen=True)
class _Work:
    experiment: str
    parts: Sequence[Sketch]
    out: Path
    formats: Sequence[str]

    def write(self, number: int) -> list[dict[str, Any]]:
        """Draw and write a part, mostly one figure; returns its index entries."""
        with _style():
            return [self._save(drawing) for drawing in self.parts[number].draw()]

    def _save(self, drawing: Drawing) -> dict[str, Any]:
        files = {kind: f"{self.experiment}/{drawing.name}.{kind}" for kind in self.formats}
        # First: it lays the figure out, and the others reuse that.
        svg = svg_text(drawing.figure)
        for kind, write in (("pdf", write_pdf), ("png", write_png)):
            if kind in files:
                with replacing(self.out / files[kind]) as temporary:
                    write(drawing.figure, temporary)
        prefix = re.sub(r"[^A-Za-z0-9-]", "-", f"{self.experiment}-{drawing.name}-")
        path = self.out / files["svg"]
        write_atomic(path, tidy_svg(svg, prefix, drawing.alt), durable=False)
        return {
            "experiment": self.experiment,
            "name": drawing.name,
            "title": drawing.title,
            "caption": drawing.caption,
            "alt": drawing.alt,
            "shows": drawing.shows,
            "files": files,
        }


def write_figures(
    results: ExperimentResults, out: Path, formats: Sequence[str] = FORMATS, processes: int = 1
) -> list[dict[str, Any]]:
    """Draw and write the figures of an experiment, and their index, into its folder in ``out``.

    SVG is always among ``formats``. If figures are left out, the entry of the last one names them.
    A figure that cannot be drawn is an entry without files and with the reason, ``missing``.
    """
    folder = out / results.name
    folder.mkdir(parents=True, exist_ok=True)
    planned = plan_figures(results)
    families()  # once, before processes share the work
    work = _Work(results.name, planned.parts, out, formats)
    write = partial(tried, _Work.write)
    written = shared_map(write, work, range(len(planned.parts)), processes)
    entries: list[dict[str, Any]] = []
    for part, drawn in zip(planned.parts, written, strict=True):
        if isinstance(drawn, Failed):
            entries.append(missing_entry(results.name, part.name, drawn.reason))
        else:
            entries += drawn
    if planned.left_out and entries:
        caption = f"{entries[-1]['caption']} {left_out_words(planned.left_out)}"
        entries[-1] = {**entries[-1], "caption": caption, "left_out": planned.left_out}
    write_atomic(folder / INDEX, json.dumps(entries, indent=1) + "\n")
    return entries
