"""The control point through a campaign: every run of it, by start, host and session."""

import pandas as pd

from scalesweep.core.formatting import PHASES
from scalesweep.experiment.results import ExperimentResults
from scalesweep.experiment.timeline import moment, timeline
from scalesweep.figures.drawing import Drawing, drawn
from scalesweep.figures.forms import Lines
from scalesweep.figures.theme import Axis


def control_figures(results: ExperimentResults) -> list[Drawing]:
    """The values of the control point in order of start; none for other experiments."""
    main, line = results.main, timeline(results)
    if not results.control or main is None or not line.times:
        return []
    values = [value * main.factor for value in line.values]
    frame = pd.DataFrame({"x": range(1, len(values) + 1), "y": values, "style": "dots"})
    frame["series"] = [str(row.get("hosts") or "") for row in line.rows]
    sessions = {moment(line.times[place]): place + 0.5 for place in line.sessions if place}
    start = Axis("Control run, in order of start", marks=sessions)
    what = f"{main.label[:1].lower()}{main.label[1:]}, {PHASES[main.steady_phase]}"
    note = "The same point, measured throughout the campaign. Upright lines: a session begins."
    return drawn(results, "control", what, note, [Lines(frame, start, Axis(main.axis_label))])
