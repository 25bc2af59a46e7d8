"""Figures of an experiment, from its tables. The only part that imports matplotlib."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl

from scalesweep.core.files import write_atomic
from scalesweep.core.parallel import shared_map
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.accuracy import accuracy_figures
from scalesweep.figures.choice import left_out_words, most_telling
from scalesweep.figures.compare import comparison_figures, site_figures, size_figures
from scalesweep.figures.control import control_figures
from scalesweep.figures.files import svg_text, write_pdf, write_png
from scalesweep.figures.fonts import families
from scalesweep.figures.heatmap import heatmap_figures
from scalesweep.figures.lines import group_figures, single_figures
from scalesweep.figures.phases import phase_energy_figures, phase_figures
from scalesweep.figures.power import power_figures
from scalesweep.figures.ranks import rank_figures
from scalesweep.figures.scaling import scaling_figures
from scalesweep.figures.style import RC, Drawing, Sketch
from scalesweep.figures.svg import tidy_svg

FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"


_Maker = Callable[[ExperimentResults], list[Drawing]]
_Lister = Callable[[ExperimentResults], list[Sketch]]


def draw(study: ExperimentResults) -> list[Drawing]:
    """The figures that suit what the experiment varies, in the order a report shows them."""
    with _style():
        (planned,) = plan_figures([study])
        return [drawing for part in planned.parts for drawing in part.draw()]


def _style() -> AbstractContextManager[None]:
    return mpl.rc_context(cast(Any, {**RC, "font.family": families()}))


@dataclass(frozen=True)
class Figures:
    """What is drawn of an experiment, and the names of the figures that are not."""

    study: ExperimentResults
    parts: list[Sketch]
    left_out: list[str]


def plan_figures(studies: Sequence[ExperimentResults]) -> list[Figures]:
    """Which figures the experiments of a campaign get; none is drawn yet."""
    listed = [[one for listing in _many(study) for one in listing(study)] for study in studies]
    chosen = most_telling(listed, sum(len(study.states) for study in studies))
    found = []
    for study, sketches, some in zip(studies, listed, chosen, strict=True):
        parts = [*_each(study, [control_figures]), *some, *_each(study, _few(study))]
        left_out = {one.name for one in sketches} - {one.name for one in some}
        names = [one.name for one in sketches if one.name in left_out]
        found.append(Figures(study, parts, names))
    return found


def _each(study: ExperimentResults, makers: Sequence[_Maker]) -> list[Sketch]:
    return [Sketch(make.__name__, partial(make, study)) for make in makers]


def _many(study: ExperimentResults) -> list[_Lister]:
    """Kinds of figures whose number grows with the parameters that vary."""
    listers: list[_Lister] = []
    if study.series and study.scale in study.leaders:
        listers += [scaling_figures, size_figures]
    words = [name for name in study.grid[:2] if not study.numeric(name)]
    if len(study.grid) >= 2 and len(words) < 2:
        listers += [heatmap_figures, group_figures]
    if len(study.leaders) > 1:
        listers += [comparison_figures]
    return listers


def _few(study: ExperimentResults) -> list[_Maker]:
    """Kinds of which there are a few figures at most; drawn in any case."""
    alone = len(study.grid) == 1 and study.scale not in study.leaders
    makers: list[_Maker] = [single_figures] if alone else []
    makers += [site_figures, rank_figures, accuracy_figures, phase_figures, phase_energy_figures]
    return [*makers, power_figures]


def save(
    drawing: Drawing, experiment: str, out: Path, formats: Sequence[str] = FORMATS
) -> dict[str, Any]:
    """Write a drawing to ``out/<experiment>``; returns its index entry. SVG is always written."""
    folder = out / experiment
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: f"{experiment}/{drawing.name}.{kind}" for kind in formats}
    with _style():
        svg = svg_text(drawing.figure)
        for kind, write in (("pdf", write_pdf), ("png", write_png)):
            if kind in files:
                write(drawing.figure, out / files[kind])
    prefix = re.sub(r"[^A-Za-z0-9-]", "-", f"{experiment}-{drawing.name}-")
    (out / files["svg"]).write_text(tidy_svg(svg, prefix, drawing.alt), "utf-8")
    return {
        "experiment": experiment,
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "alt": drawing.alt,
        "files": files,
    }


def write_figures(
    studies: Sequence[ExperimentResults],
    out: Path,
    formats: Sequence[str] = FORMATS,
    processes: int = 1,
) -> list[dict[str, Any]]:
    """Draw and write the figures of all experiments and ``index.json``; stale files go.

    Where figures of an experiment are left out, the entry of its last one names them.
    """
    out.mkdir(parents=True, exist_ok=True)
    with _style():
        planned = plan_figures(studies)
    work = _Work(planned, out, formats)
    written = iter(shared_map(_Work.write, work, range(len(work.parts)), processes))
    entries = [entry for one in planned for entry in _entries(one, written)]
    keep = {out / name for entry in entries for name in entry["files"].values()}
    for path in out.glob("*/*"):
        if path not in keep and path.suffix[1:] in FORMATS and path.is_file():
            path.unlink()
    for folder in [path for path in out.iterdir() if path.is_dir() and not path.is_symlink()]:
        if not any(folder.iterdir()):
            folder.rmdir()
    write_atomic(out / INDEX, json.dumps(entries, indent=1) + "\n")
    return entries


def _entries(one: Figures, written: Iterator[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The index entries of an experiment, whose parts come next in ``written``."""
    entries = [entry for _ in one.parts for entry in next(written)]
    if one.left_out and entries:
        caption = f"{entries[-1]['caption']} {left_out_words(one.left_out)}"
        entries[-1] |= {"caption": caption, "left_out": one.left_out}
    return entries


class _Work:
    """The figures of all experiments in parts that processes can share."""

    def __init__(self, planned: Sequence[Figures], out: Path, formats: Sequence[str]) -> None:
        self._out, self._formats = out, formats
        self.parts = [(one.study.name, part) for one in planned for part in one.parts]

    def write(self, number: int) -> list[dict[str, Any]]:
        """Draw and write a part; returns its index entries."""
        experiment, part = self.parts[number]
        with _style():
            drawings = part.draw()
        return [save(drawing, experiment, self._out, self._formats) for drawing in drawings]
