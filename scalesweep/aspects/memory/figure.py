"""The figure ``memory``: measured peaks over what the model expects."""

import math

import pandas as pd

from scalesweep.aspects.memory.table import GIB, OUT_OF_MEMORY, MemoryFitRow, MemoryRow
from scalesweep.core.formatting import number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn, evenly
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

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
    frame = pd.DataFrame(dots, columns=["series", "x", "y"]).assign(style="dots")
    frame[["x", "y"]] = frame[["x", "y"]].astype(float) / GIB
    ends, band = [frame["x"].min() / 1.15, frame["x"].max() * 1.15], math.exp(2 * fits[0].spread)
    model = pd.DataFrame(
        {"series": "expected, ± two standard deviations of the model", "style": "mean",
         "x": end, "y": end, "low": end / band, "high": end * band}
        for end in ends
    )  # fmt: skip
    devices = {row.device for row in (*measured, *failed) if row.device}
    size = (devices.pop() or 0.0) / GIB if len(devices) == 1 else 0.0
    marks = {f"the device has {number(size)} GiB": size} if ends[0] < size < 3 * ends[1] else {}
    panel = Lines(pd.concat([frame, model]), Axis("Expected by the model [GiB]", "log"),
                  Axis("Measured [GiB]", "log", marks))  # fmt: skip
    what = "measured memory of a rank, and what the model expects"
    note = "Each point is predicted by a fit without it; runs out of memory are at the device's."
    return drawn(results, "memory", what, note, [panel])


FIGURES = (memory_figures,)
