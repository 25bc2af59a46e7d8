"""The share that each point takes of each resource."""

import pandas as pd

from scalesweep.aspects.headroom.table import points_of
from scalesweep.core.formatting import PHASES
from scalesweep.experiment.results import ExperimentResults
from scalesweep.figures.drawing import MAX_BARS, Drawing, drawn, evenly, interval, labels_of
from scalesweep.figures.forms import Dots
from scalesweep.figures.theme import Axis


def headroom_figures(results: ExperimentResults) -> list[Drawing]:
    """Shares by point and resource, with intervals; none without a probe."""
    every = points_of(results)
    points = evenly(every, MAX_BARS)
    names, shared = labels_of(results, [rows[0].row for rows in points])
    several = len({rows[0].phase for rows in points} - {"run"}) > 1
    frame = pd.DataFrame(
        {"label": name + (f", {PHASES[row.phase]}" if several else ""), "series": row.resource,
         **interval(row.share, 100.0)}
        for name, rows in zip(names, points, strict=True)
        for row in rows
        if row.share
    )  # fmt: skip
    axis = Axis("Share of what probes reach [%]", "log", {"all that probes reach": 100.0})
    return drawn(results, "headroom", "share of what probes reach", "Lines: 95 % intervals.",
                 [Dots(frame, axis)] if len(frame) else [], len(every) - len(points),
                 detail=shared)  # fmt: skip


FIGURES = (headroom_figures,)
