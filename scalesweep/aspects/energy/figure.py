"""Power over time of a few runs, with their phases behind it."""

from typing import Any

import pandas as pd

from scalesweep.aspects.phases.figure import looks_of
from scalesweep.core.formatting import scaled_unit
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.figures.drawing import Drawing, drawn, labels_of
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis

SLOTS = 200  # a phase narrower than one of these is not drawn


def power_figures(results: ExperimentResults) -> list[Drawing]:
    """A panel per run of the table `power`: the total and, below it, domains."""
    runs: dict[str, list[Row]] = {}
    for row in results.rows("power"):
        runs.setdefault(str(row["run_id"]), []).append(row)
    frame = results.tables.get("power")
    if not runs or frame is None:
        return []
    spans: dict[str, Any] = frame.attrs.get("spans", {})
    looks = looks_of({name for run_id in runs for name, *_ in spans.get(run_id, [])})
    factor, unit = scaled_unit("W", float(frame["watts"].max()))
    labels, shared = labels_of(results, [rows[0] for rows in runs.values()])
    panels = []
    for label, (run_id, rows) in zip(labels, runs.items(), strict=True):
        lines = pd.DataFrame(
            {
                "x": row["seconds"],
                "y": row["watts"],
                "style": "steps",
                "series": str(row["domain"]) + ("" if row["counted"] else " (not counted)"),
            }
            for row in rows
        )
        lines["y"] *= factor
        end = lines["x"].max()
        seen = [
            (name.replace("_", " "), first, last, looks[name][0])
            for name, first, last in spans.get(run_id, [])
            if last - first > end / SLOTS
        ]
        time, watts = Axis("Time since the start [s]"), Axis(f"Power [{unit}]", "zero")
        panels.append(Lines(lines, time, watts, label, spans=seen, height=2.1))
    note = "The first repeat with power samples of each point, all hosts. Shaded: phases of rank 0."
    return drawn(results, "power-time", "power over time", note, panels,
                 columns=min(2, len(panels)), detail=shared)  # fmt: skip


FIGURES = (power_figures,)
