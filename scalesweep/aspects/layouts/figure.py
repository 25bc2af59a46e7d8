"""The figure of layouts: the best of each scale as it keeps the rate of a rank."""

import pandas as pd

from scalesweep.aspects.layouts.table import held_layouts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_SETTINGS = 4


def layout_figures(results: ExperimentResults) -> list[Drawing]:
    """Of each thing that is computed the efficiency of the best layout of each scale."""
    rows = [
        {"x": scale, "y": share, "series": held.setting or "best layout"}
        for held in held_layouts(results)[:MAX_SETTINGS]
        for scale, share in held.shares.items()
    ]
    target = {f"{100 * results.target:g} % target": results.target}
    panel = Lines(
        pd.DataFrame(rows), Axis(f"Number of {results.scale}", "scale"),
        Axis("Efficiency", "share", target), height=3.0,
    )  # fmt: skip
    note = (
        f"Efficiency is relative to the best layout of the smallest {results.scale_words} of each "
        "setting."
    )
    return drawn(results, "layouts-scale", "the best layout of each scale", note, [panel])


FIGURES = (layout_figures,)
