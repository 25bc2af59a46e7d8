"""The figure ``memory``: measured peaks over what the model expects."""

import math

import pandas as pd

from scalesweep.aspects.memory.table import GIB, OUT_OF_MEMORY, MemoryFitRow, MemoryRow
from scalesweep.core.formatting import number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn, evenly, points_shown
from scalesweep.figures.forms import Scatter
from scalesweep.figures.theme import FAINT, INK, Axis

MAX_POINTS = 600  # of each kind


def memory_figures(results: ExperimentResults) -> list[Drawing]:
    """Measured against expected bytes, with runs out of memory at the device's."""
    rows, fits = results.of(MemoryRow), results.of(MemoryFitRow)
    measured = evenly([row for row in rows if row.measured is not None], MAX_POINTS)
    if not measured or not fits:
        return []
    failed = evenly(
        [row for row in rows if row.outcome == OUT_OF_MEMORY and row.device], MAX_POINTS
    )
    dots = [("measured peak", row.expected, row.measured) for row in measured]
    dots += [("out of memory", row.needed, row.device) for row in failed]
    frame = pd.DataFrame(dots, columns=["series", "x", "y"])
    frame[["x", "y"]] = frame[["x", "y"]].astype(float) / GIB
    ends, band = [frame["x"].min() / 1.15, frame["x"].max() * 1.15], math.exp(2 * fits[0].spread)
    curves = pd.DataFrame(
        {"series": name, "x": end, "y": end * factor, "style": style}
        for name, factor, style in (
            ("as expected", 1.0, {"color": INK, "linestyle": "--"}),
            ("± two standard deviations of the model", band, {"color": FAINT}),
            ("", 1 / band, {"color": FAINT}),
        )
        for end in ends
    )
    devices = {row.device for row in (*measured, *failed) if row.device}
    size = (devices.pop() or 0.0) / GIB if len(devices) == 1 else 0.0
    marks = {f"the device has {number(size)} GiB": size} if ends[0] < size < 3 * ends[1] else {}
    panel = Scatter(frame, Axis("Expected by the model [GiB]", "log"),
                    Axis("Measured [GiB]", "log", marks), curves=curves)  # fmt: skip
    what = "measured memory of a rank, and what the model expects"
    note = "Each point is predicted by a fit without it; runs out of memory are at the device's."
    shows = points_shown(results, [row.row for row in (*measured, *failed)])
    return drawn(results, "memory", what, note, [panel], shows=shows)


FIGURES = (memory_figures,)
