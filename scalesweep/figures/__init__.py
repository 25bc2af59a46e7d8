"""Figures of an experiment, from its tables. The only part that imports matplotlib."""

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import matplotlib as mpl

from scalesweep.figures.accuracy import accuracy_figures
from scalesweep.figures.compare import comparison_figures, site_figures, size_figure
from scalesweep.figures.heatmap import heatmap_figures
from scalesweep.figures.lines import group_figures, single_figures
from scalesweep.figures.phases import phase_energy_figures, phase_figures
from scalesweep.figures.power import power_figures
from scalesweep.figures.scaling import scaling_figures
from scalesweep.figures.style import RC, Drawing
from scalesweep.figures.svg import tidy_svg
from scalesweep.record import write_atomic
from scalesweep.study import Study

FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"


def draw(study: Study) -> list[Drawing]:
    """All figures that suit what the experiment varies, in the order a report shows them."""
    with mpl.rc_context(cast(Any, RC)):
        drawings: list[Drawing] = []
        if study.series and study.scale in study.leaders:
            drawings += scaling_figures(study) + size_figure(study)
        words = [name for name in study.grid[:2] if not study.numeric(name)]
        if len(study.grid) >= 2 and len(words) < 2:
            drawings += heatmap_figures(study) + group_figures(study)
        elif len(study.grid) == 1 and study.scale not in study.leaders:
            drawings += single_figures(study)
        if len(study.leaders) > 1:
            drawings += comparison_figures(study)
        drawings += site_figures(study) + accuracy_figures(study) + phase_figures(study)
        return drawings + phase_energy_figures(study) + power_figures(study)


def save(
    drawing: Drawing, experiment: str, out: Path, formats: Sequence[str] = FORMATS
) -> dict[str, Any]:
    """Write a drawing to ``out/<experiment>``; returns its index entry. SVG is always written."""
    folder = out / experiment
    folder.mkdir(parents=True, exist_ok=True)
    files = {kind: f"{experiment}/{drawing.name}.{kind}" for kind in formats}
    with mpl.rc_context(cast(Any, RC)):
        buffer = io.StringIO()
        drawing.figure.savefig(buffer, format="svg", metadata={"Date": None})
        # The layout is found once; the other formats reuse it.
        drawing.figure.set_layout_engine("none")
        dated = {"CreationDate": None, "Producer": None, "Creator": None}
        for kind, metadata in (("pdf", dated), ("png", {"Software": None})):
            if kind in files:
                drawing.figure.savefig(out / files[kind], metadata=metadata)
    prefix = re.sub(r"[^A-Za-z0-9-]", "-", f"{experiment}-{drawing.name}-")
    (out / files["svg"]).write_text(tidy_svg(buffer.getvalue(), prefix, drawing.alt), "utf-8")
    return {
        "experiment": experiment,
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "alt": drawing.alt,
        "files": files,
    }


def write_figures(
    studies: Sequence[Study], out: Path, formats: Sequence[str] = FORMATS
) -> list[dict[str, Any]]:
    """Draw and write the figures of all experiments and ``index.json``; stale files go."""
    out.mkdir(parents=True, exist_ok=True)
    entries = [
        save(drawing, study.name, out, formats) for study in studies for drawing in draw(study)
    ]
    keep = {out / name for entry in entries for name in entry["files"].values()}
    for path in out.glob("*/*"):
        if path not in keep and path.suffix[1:] in FORMATS and path.is_file():
            path.unlink()
    for folder in [path for path in out.iterdir() if path.is_dir() and not path.is_symlink()]:
        if not any(folder.iterdir()):
            folder.rmdir()
    write_atomic(out / INDEX, json.dumps(entries, indent=1) + "\n")
    return entries
