"""The time of every step from the first one on: how long runs take to become steady."""

import pandas as pd

from scalesweep.aspects.warm_up.table import WarmUp, WarmUpCurve
from scalesweep.core.formatting import counted
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.figures.drawing import Drawing, drawn, evenly, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

MAX_PANELS = 6
LOG_FROM = 400  # steps: the first ones of more have no room on a linear axis
_LINES = {"declared": "end of the declared warm-up", "detected": "steady from here"}


def warm_up_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel for each of a few points: the time of a step over the steps."""
    curves: dict[Key, list[WarmUpCurve]] = {}
    for row in results.of(WarmUpCurve):
        curves.setdefault(results.point_key({**row.point, "source": row.source}), []).append(row)
    points = results.of(WarmUp)
    chosen = evenly(points, MAX_PANELS)
    columns = min(len(chosen), 3)
    names, shared = labels_of(results, [point.row for point in chosen], 90 // (columns or 1) - 10)
    panels = [
        _panel(point, curves[results.point_key(point.row)], name)
        for point, name in zip(chosen, names, strict=True)
    ]
    unsteady = sum(point.unsteady > 0 for point in chosen)
    note = "Median, 10 % to 90 % and the longest over ranks and runs; a point may be several steps."
    note += f" {counted(unsteady, 'point')} not steady at the end." if unsteady else ""
    return drawn(results, "warm-up", "time of each step, warm-up included", note, panels,
                 len(points) - len(chosen), columns=columns, detail=shared)  # fmt: skip


def _panel(point: WarmUp, curve: list[WarmUpCurve], title: str) -> Lines:
    frame = pd.DataFrame(
        {"x": row.step + (row.steps - 1) / 2, "y": row.p50_ms, "low": row.p10_ms,
         "high": row.p90_ms, "series": "median", "style": "", "max": row.max_ms}
        for row in curve
    )  # fmt: skip
    longest = frame[["x"]].assign(y=frame["max"], series="longest", style="plain")
    # Between the last step of the warm-up and the first behind it.
    marks = {words: getattr(point, kind) + 0.5 for kind, words in _LINES.items()
             if getattr(point, kind) is not None}  # fmt: skip
    steps = Axis("Step", "log" if point.count > LOG_FROM else "linear", marks)
    return Lines(
        pd.concat([frame, longest]), steps, Axis("Time of a step [ms]", "log"), title, height=2.1
    )


FIGURES = (warm_up_figures,)
