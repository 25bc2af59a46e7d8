"""Figures of an experiment, from its tables. The only part that imports matplotlib.

Those of an experiment are drawn together, by a job of their own.
"""

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

from scalesweep.aspects.registry import parts
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.parallel import shared_map
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing
from scalesweep.figures.files import CONVERTERS, svg_text
from scalesweep.figures.parameters import control_figures
from scalesweep.figures.theme import NARROW, STYLE

FORMATS = ("svg", "pdf", "png")
INDEX = "index.json"
Maker = Callable[[ExperimentResults], list[Drawing]]


def draw(results: ExperimentResults) -> list[Drawing]:
    """The figures that suit what the experiment varies, in the order a report shows them."""
    return [drawing for make in makers() for drawing in make(results)]


def makers() -> list[Maker]:
    """What makes the figures of an experiment, in their order."""
    return [control_figures, *(maker for each in parts("FIGURES") for maker in each)]


@dataclass(frozen=True)
class _Work:
    results: ExperimentResults
    out: Path
    formats: Sequence[str]


def _made(work: _Work, make: Maker) -> list[dict[str, Any]]:
    """Draw and write the figures of a maker; returns their index entries.

    What cannot be drawn is an entry without files and with the reason, ``missing``.
    """
    name = work.results.name
    try:
        with mpl.rc_context(fname=STYLE):
            return [_save(work, drawing) for drawing in make(work.results)]
    except (UserError, OSError):
        raise
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".removesuffix(": ")
        words = f"Not drawn: {reason}. The tables have its numbers."
        what = make.__name__.removesuffix("_figures").replace("_", "-")
        return [
            {"experiment": name, "name": what, "title": f"{name}: {what}", "caption": words,
             "files": {}, "wide": False, "missing": reason}
        ]  # fmt: skip


def _save(work: _Work, drawing: Drawing) -> dict[str, Any]:
    name = work.results.name
    files = {kind: f"{name}/{drawing.name}.{kind}" for kind in work.formats}
    text = svg_text(drawing.figure, f"{name}/{drawing.name}", drawing.alt)
    write_atomic(work.out / files["svg"], text, durable=False)
    for kind in files.keys() & CONVERTERS:
        write_atomic(work.out / files[kind], CONVERTERS[kind](text), durable=False)
    return {"experiment": name, "name": drawing.name, "title": drawing.title,
            "caption": drawing.caption, "files": files,
            "wide": bool(drawing.figure.get_figwidth() > NARROW)}  # fmt: skip


def write_figures(
    results: ExperimentResults, out: Path, formats: Sequence[str] = FORMATS, processes: int = 1
) -> list[dict[str, Any]]:
    """Draw and write the figures of an experiment, and their index, into its folder in ``out``.

    SVG is always among ``formats``.
    """
    folder = out / results.name
    folder.mkdir(parents=True, exist_ok=True)
    written = shared_map(_made, _Work(results, out, formats), makers(), processes)
    entries = [entry for made in written for entry in made]
    write_atomic(folder / INDEX, json.dumps(entries, indent=1) + "\n")
    return entries
