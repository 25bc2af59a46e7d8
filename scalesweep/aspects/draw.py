"""Figures of an experiment, from its tables. The only part that imports matplotlib.

A figure is drawn again only where its experiment's tables or entry in the plan have changed, or the
code; and its PDF and PNG only where the SVG, which is drawn first, differs from the last one.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from scalesweep.core.files import content_digest, digest_of, file_digest, replacing, write_atomic
from scalesweep.core.formatting import counted
from scalesweep.core.kept_files import KeptFiles, code_digest, remove_others
from scalesweep.core.parallel import shared_map
from scalesweep.experiment.load import inputs_digest
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.control import control_figures
from scalesweep.figures.files import svg_text, write_pdf, write_png
from scalesweep.figures.heatmap import FIRST as FIRST_HEATMAP
from scalesweep.figures.heatmap import heatmap_figures
from scalesweep.figures.lines import group_figures, single_figures
from scalesweep.figures.missing import Failed, missing_entry, tried
from scalesweep.figures.style import RC, Drawing, Sketch, families, whole_fonts
from scalesweep.figures.svg import tidy_svg

MANY_POINTS, MOST_FIGURES = 200, 15
# In falling order of what they tell of an experiment as a whole.
_KINDS = ("overview", "heatmap", "compare", "ratio", "scaling", "groups", "size")
_NUMBERED = re.compile(r"-(\d+)(-|$)")


def most_telling(sketches: Sequence[Sequence[Sketch]], points: int) -> list[list[Sketch]]:
    """Of each experiment the sketches to be drawn, in their order.

    All of them unless the campaign has ``MANY_POINTS``; then ``MOST_FIGURES``, the most telling of
    each experiment first, and the first heat map of each in any case. Later epochs go before first
    ones, and the first series (or plane) before further ones.
    """
    if points < MANY_POINTS:
        return [list(drawings) for drawings in sketches]
    turns = [
        (turn, experiment, place)
        for experiment, drawings in enumerate(sketches)
        for turn, place in enumerate(
            sorted(range(len(drawings)), key=lambda i: (_rank(drawings[i]), i))
        )
    ]
    chosen = {(experiment, place) for _, experiment, place in sorted(turns)[:MOST_FIGURES]}
    chosen |= {
        (experiment, place)
        for experiment, drawings in enumerate(sketches)
        for place, drawing in enumerate(drawings)
        if drawing.name == FIRST_HEATMAP
    }
    return [
        [sketch for place, sketch in enumerate(drawings) if (experiment, place) in chosen]
        for experiment, drawings in enumerate(sketches)
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
        f"further series or parameters): a campaign of {MANY_POINTS} points or more has "
        f"{MOST_FIGURES} figures of scaling, comparisons and heat maps, the most informative of "
        "each experiment first, and of each experiment a heat map. The tables have all points."
    )


FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"
LIBRARIES = ("matplotlib", "numpy", "pandas", "fonttools", "pillow")

_Maker = Callable[[ExperimentResults], list[Drawing]]
_Lister = Callable[[ExperimentResults], list[Sketch]]


def draw(results: ExperimentResults) -> list[Drawing]:
    """The figures that suit what the experiment varies, in the order a report shows them."""
    with _style():
        (planned,) = plan_figures([results])
        return [drawing for part in planned.parts for drawing in part.draw()]


def _style() -> AbstractContextManager[None]:
    return mpl.rc_context(cast(Any, {**RC, "font.family": families()}))


@dataclass(frozen=True)
class Figures:
    """What is drawn of an experiment, and the names of the figures that are not."""

    results: ExperimentResults
    parts: list[Sketch]
    left_out: list[str]


def plan_figures(
    studies: Sequence[ExperimentResults], known: Mapping[str, Sequence[str]] | None = None
) -> list[Figures]:
    """Which figures the experiments of a campaign get; none is drawn yet.

    ``known``: of experiments whose figures were listed before the names of those of ``listed``.
    """
    sketches = [
        [Sketch(name, partial(_listed_one, results, name)) for name in (known or {})[results.name]]
        if results.name in (known or {})
        else listed(results)
        for results in studies
    ]
    chosen = most_telling(sketches, sum(len(results.states) for results in studies))
    figures = []
    for results, every, kept in zip(studies, sketches, chosen, strict=True):
        parts = [*_each(results, [control_figures]), *kept, *_each(results, _few(results))]
        left_out = {sketch.name for sketch in every} - {sketch.name for sketch in kept}
        names = [sketch.name for sketch in every if sketch.name in left_out]
        figures.append(Figures(results, parts, names))
    return figures


def listed(results: ExperimentResults) -> list[Sketch]:
    """The figures of an experiment whose number grows with the parameters that vary."""
    return [sketch for listing in _many(results) for sketch in listing(results)]


def _listed_one(results: ExperimentResults, name: str) -> list[Drawing]:
    return next(sketch for sketch in listed(results) if sketch.name == name).draw()


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


def _drawn_by() -> str:
    """Digest of what the look of a figure may owe to code, fonts and a user's matplotlibrc."""
    settings = sorted(f"{k}={v!r}" for k, v in dict.items(mpl.rcParams) if "backend" not in k)
    fonts = [file_digest(Path(path)) for path in whole_fonts()]
    return digest_of([code_digest(*LIBRARIES), settings, fonts])


@dataclass(frozen=True)
class _Part:
    """What is drawn at once: mostly one figure, the same in every campaign that has it."""

    experiment: str
    sketch: Sketch

    @property
    def name(self) -> str:
        """The part among all of the campaign."""
        return f"{self.experiment}/{self.sketch.name}"


@dataclass(frozen=True)
class _Work:
    parts: Sequence[_Part]
    kept: KeptFiles
    out: Path
    formats: Sequence[str]

    def write(self, number: int) -> dict[str, Any]:
        """Draw and write a part; returns its note: index entries, and digests of its SVGs."""
        part = self.parts[number]
        before = (self.kept.note(part.name) or {}).get("svg", {})
        with _style():
            drawings = part.sketch.draw()
            entries, digests = [], {}
            for drawing in drawings:
                entry = self._entry(part.experiment, drawing)
                digest = self._save(drawing, entry["files"], before.get(drawing.name, ""))
                entries.append(entry)
                digests[drawing.name] = digest
        return {"entries": entries, "svg": digests}

    def _entry(self, experiment: str, drawing: Drawing) -> dict[str, Any]:
        return {
            "experiment": experiment,
            "name": drawing.name,
            "title": drawing.title,
            "caption": drawing.caption,
            "alt": drawing.alt,
            "shows": drawing.shows,
            "files": {kind: f"{experiment}/{drawing.name}.{kind}" for kind in self.formats},
        }

    def _save(self, drawing: Drawing, files: Mapping[str, str], before: str) -> str:
        """Write the files of a drawing; returns the digest of its SVG, which was ``before``."""
        path = self.out / files["svg"]
        path.parent.mkdir(parents=True, exist_ok=True)
        svg = svg_text(drawing.figure)
        # All numbers are in there, so that the other formats have not changed if it has not.
        digest = content_digest(svg.encode())
        for kind, write in (("pdf", write_pdf), ("png", write_png)):
            if kind in files and not (digest == before and self.kept.restore(files[kind])):
                with replacing(self.out / files[kind]) as temporary:
                    write(drawing.figure, temporary)
        prefix = re.sub(r"[^A-Za-z0-9-]", "-", f"{path.parent.name}-{drawing.name}-")
        write_atomic(path, tidy_svg(svg, prefix, drawing.alt), durable=False)
        return digest


def write_figures(
    studies: Sequence[ExperimentResults],
    out: Path,
    formats: Sequence[str] = FORMATS,
    processes: int = 1,
    tables: Path | None = None,
    links: Path | None = None,
) -> list[dict[str, Any]]:
    """Draw and write the figures of all experiments and ``index.json``; stale files go.

    SVG is always among ``formats``. With ``tables``, the folder of all tables that ``studies`` read
    theirs from, figures that would be the same are taken from the last call, and get a further name
    in the folder ``links``. Where figures of an
    experiment are left out, the entry of its last one names them. A figure that
    cannot be drawn is an entry without files and with the reason, ``missing``; the next call tries
    again.
    """
    out.mkdir(parents=True, exist_ok=True)
    kept = KeptFiles(out, digest_of([_drawn_by(), list(formats)]))
    keys = {results.name: inputs_digest(results, tables) for results in studies} if tables else {}
    known = {name: kept.note(name) for name, key in keys.items() if kept.take(name, key)}
    planned = plan_figures(studies, known)
    parts = [_Part(figures.results.name, sketch) for figures in planned for sketch in figures.parts]
    to_draw = [
        part
        for part in parts
        if part.experiment not in keys or not kept.take(part.name, keys[part.experiment])
    ]
    if to_draw:
        families()  # once, before processes share the work
    work = _Work(to_draw, kept, out, formats)
    write = partial(tried, _Work.write)
    written = shared_map(write, work, range(len(to_draw)), processes)
    drawn = [_note(part, result) for part, result in zip(to_draw, written, strict=True)]
    notes = {part.name: kept.note(part.name) for part in parts}
    notes |= {part.name: note for part, note in zip(to_draw, drawn, strict=True)}
    entries = [entry for figures in planned for entry in _entries(figures, notes)]
    files = {out / name for entry in entries for name in entry["files"].values()}
    remove_others(out, files)
    write_atomic(out / INDEX, json.dumps(entries, indent=1) + "\n")
    if tables:
        for figures in planned:
            if figures.results.name not in known:
                names = [sketch.name for sketch in listed(figures.results)]
                kept.add(figures.results.name, keys[figures.results.name], [], names)
        for part, note in zip(to_draw, drawn, strict=True):
            made = [out / name for entry in note["entries"] for name in entry["files"].values()]
            whole = not any("missing" in entry for entry in note["entries"])
            kept.add(part.name, keys[part.experiment] if whole else "", made, note)
        kept.save()
        if links:
            kept.link_to(links)
    return entries


def _note(part: _Part, result: Any) -> dict[str, Any]:
    """The note of a part that was drawn, or could not be."""
    if not isinstance(result, Failed):
        return dict(result)
    entry = missing_entry(part.experiment, part.sketch.name, result.reason)
    return {"entries": [entry], "svg": {}}


def _entries(figures: Figures, notes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The index entries of an experiment, from the notes of its parts."""
    parts = [_Part(figures.results.name, sketch).name for sketch in figures.parts]
    entries = [entry for name in parts for entry in notes[name]["entries"]]
    if figures.left_out and entries:
        caption = f"{entries[-1]['caption']} {left_out_words(figures.left_out)}"
        entries[-1] = {**entries[-1], "caption": caption, "left_out": figures.left_out}
    yield from entries
