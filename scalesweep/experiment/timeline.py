"""The runs of an experiment in the order in which they were started."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Row


@dataclass(frozen=True)
class Timeline:
    """Start times in Unix seconds, rising, and each run's value and row of the table `runs`."""

    times: Sequence[float]
    values: Sequence[float]
    rows: Sequence[Row]

    @property
    def logs(self) -> Sequence[float]:
        """Natural logarithms of the values."""
        return [float(value) for value in np.log(self.values)]

    @cached_property
    def hosts(self) -> list[str]:
        """The sets of hosts that runs were on, by their number of runs; none where not known."""
        names = [str(row["hosts"]) for row in self.rows if row.get("hosts")]
        return sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))


def timeline(results: ExperimentResults) -> Timeline:
    """The measured runs of known start that have the main metric in its steady phase, where it is
    positive."""
    main, frame = results.main, results.tables.get("runs")
    name = column(main.metric, "mean", main.steady_phase) if main else ""
    if frame is None or name not in frame:
        return Timeline([], [], [])
    wanted = ["source", "started", name, *results.axes, *(["hosts"] if "hosts" in frame else [])]
    runs = []
    for place, row in enumerate(frame[wanted].to_dict("records")):
        dated = row["source"] == "measured" and isinstance(row["started"], str)
        if dated and finite(row[name]) and row[name] > 0:
            began = datetime.fromisoformat(row["started"]).timestamp()
            runs.append((began, place, float(row[name]), row))
    runs.sort(key=lambda run: run[:2])
    times, _, values, rows = map(list, zip(*runs, strict=True)) if runs else ([], [], [], [])
    return Timeline(times, values, rows)
