"""Power over time of a few runs, with their phases behind it."""

import pandas as pd

from scalesweep.aspects.energy.table import TOTAL, Power
from scalesweep.aspects.phases import looks_of
from scalesweep.core.formatting import scaled_unit
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import Drawing, drawn, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis


def power_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel per run of the table `power`: the total and, below it, domains."""
    frame = results.tables.get(Power.TABLE)
    if frame is None:
        return []
    runs = {str(run_id): rows for run_id, rows in frame.groupby("run_id", sort=False)}
    looks = looks_of(frame["phase"].dropna().unique())
    factor, unit = scaled_unit("W", float(frame["watts"].max()))
    firsts: list[Row] = frame.drop_duplicates("run_id").to_dict("records")  # type: ignore[assignment]
    labels, shared = labels_of(results, firsts)
    panels = []
    for label, rows in zip(labels, runs.values(), strict=True):
        series = rows["domain"] + rows["counted"].map({True: "", False: " (not counted)"})
        lines = pd.DataFrame({"x": rows["seconds"], "y": factor * rows["watts"], "style": "steps",
                              "series": series})  # fmt: skip
        total = rows[rows["domain"] == TOTAL]
        total = total.assign(begin=total["seconds"].shift(fill_value=0.0))
        seen = [
            (str(own["phase"].iloc[0]).replace("_", " "), own["begin"].iloc[0],
             own["seconds"].iloc[-1], looks[own["phase"].iloc[0]][0])
            for _, own in total.groupby((total["phase"] != total["phase"].shift()).cumsum())
            if own["phase"].notna().all()
        ]  # fmt: skip
        time, watts = Axis("Time since the start [s]"), Axis(f"Power [{unit}]", "zero")
        panels.append(Lines(lines, time, watts, label, spans=seen, height=2.1))
    note = "The first repeat with power samples of each point, all hosts. Shaded: phases of rank 0."
    return drawn(results, "power-time", "power over time", note, panels,
                 columns=min(2, len(panels)), detail=shared)  # fmt: skip


FIGURES = (power_figures,)
