"""Figures of an experiment, from its tables. The only part that imports matplotlib."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl

from scalesweep.figures.accuracy import accuracy_figures
from scalesweep.figures.compare import comparison_figures, site_figures, size_figure
from scalesweep.figures.control import control_figures
from scalesweep.figures.files import svg_text, write_pdf, write_png
from scalesweep.figures.heatmap import heatmap_figures
from scalesweep.figures.lines import group_figures, single_figures
from scalesweep.figures.phases import phase_energy_figures, phase_figures
from scalesweep.figures.power import power_figures
from scalesweep.figures.scaling import scaling_figures
from scalesweep.figures.style import RC, Drawing
from scalesweep.figures.svg import tidy_svg
from scalesweep.record import write_atomic
from scalesweep.study import Study
from scalesweep.workers import shared_map

FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"


_Maker = Callable[[Study], list[Drawing]]
# Those that draw most begin first where processes share the work.
_LONGEST: tuple[_Maker, ...] = (comparison_figures, scaling_figures, group_figures)


def draw(study: Study) -> list[Drawing]:
    """All figures that suit what the experiment varies, in the order a report shows them."""
    with mpl.rc_context(cast(Any, RC)):
        return [drawing for make in _makers(study) for drawing in make(study)]


def _makers(study: Study) -> list[_Maker]:
    makers: list[_Maker] = [control_figures]
    if study.series and study.scale in study.leaders:
        makers += [scaling_figures, size_figure]
    words = [name for name in study.grid[:2] if not study.numeric(name)]
    if len(study.grid) >= 2 and len(words) < 2:
        makers += [heatmap_figures, group_figures]
    elif len(study.grid) == 1 and study.scale not in study.leaders:
        makers += [single_figures]
    if len(study.leaders) > 1:
        makers += [comparison_figures]
    makers += [site_figures, accuracy_figures, phase_figures]
    return [*makers, phase_energy_figures, power_figures]


def save(
    drawing: Drawing, experiment: str, out: Path, formats: Sequence[str] = FORMATS
) -> dict[str, Any]:
    """Write a drawing to ``out/<experiment>``; returns its index entry. SVG is always written."""
    folder = out / experiment
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: f"{experiment}/{drawing.name}.{kind}" for kind in formats}
    with mpl.rc_context(cast(Any, RC)):
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
    studies: Sequence[Study], out: Path, formats: Sequence[str] = FORMATS, processes: int = 1
) -> list[dict[str, Any]]:
    """Draw and write the figures of all experiments and ``index.json``; stale files go."""
    out.mkdir(parents=True, exist_ok=True)
    work = _Work(studies, out, formats)
    order = sorted(range(len(work.parts)), key=work.rank)
    written = dict(zip(order, shared_map(_Work.write, work, order, processes), strict=True))
    entries = [entry for number in range(len(work.parts)) for entry in written[number]]
    keep = {out / name for entry in entries for name in entry["files"].values()}
    for path in out.glob("*/*"):
        if path not in keep and path.suffix[1:] in FORMATS and path.is_file():
            path.unlink()
    for folder in [path for path in out.iterdir() if path.is_dir() and not path.is_symlink()]:
        if not any(folder.iterdir()):
            folder.rmdir()
    write_atomic(out / INDEX, json.dumps(entries, indent=1) + "\n")
    return entries


class _Work:
    """The figures of all experiments in parts that processes can share: a kind of one study."""

    def __init__(self, studies: Sequence[Study], out: Path, formats: Sequence[str]) -> None:
        self._out, self._formats = out, formats
        self.parts = [(study, make) for study in studies for make in _makers(study)]

    def rank(self, number: int) -> int:
        """Place of a part in the order of beginning."""
        make = self.parts[number][1]
        return _LONGEST.index(make) if make in _LONGEST else len(_LONGEST)

    def write(self, number: int) -> list[dict[str, Any]]:
        """Draw and write a part; returns its index entries."""
        study, make = self.parts[number]
        with mpl.rc_context(cast(Any, RC)):
            drawings = make(study)
        return [save(drawing, study.name, self._out, self._formats) for drawing in drawings]
