"""Every number of an experiment as Extra-P reads them: a file of JSON lines.

One line for each point and measure (https://github.com/extra-p/extrap, docs/file-formats.md):
``{"params": {"ranks": 8}, "callpath": "...", "metric": "...", "value": [...]}``, a value for each
repeat. Parameters are numbers there; what is none tells call paths apart.
"""

import json
from pathlib import Path

from scalesweep.analysis.metrics import column
from scalesweep.core.formatting import finite
from scalesweep.core.own_files import publish
from scalesweep.tables.points import ExperimentData

EXTRA_P = "extra_p.jsonl"


def extra_p_lines(data: ExperimentData) -> list[str]:
    """The lines of an experiment, point by point."""
    points = [point for point in data.points() if point.rows.size]
    numeric = [
        name
        for name in data.axes
        if all(finite(point.values[name]) and point.values[name] > 0 for point in points)
    ]
    sources = {point.source for point in points}
    lines = []
    for point in points:
        words = [f"{n}={json.dumps(point.values[n])}" for n in data.axes if n not in numeric]
        words += [f"source={point.source}"] if len(sources) > 1 else []
        for metric, phase in data.measures:
            values = data.repeats(point, (metric, phase)).tolist()
            if values:
                line = {
                    "params": {name: point.values[name] for name in numeric},
                    "callpath": " ".join(words) or data.experiment["name"],
                    "metric": column(metric, "", phase),
                    "value": values,
                }
                lines.append(json.dumps(line))
    return lines


def write_extra_p(data: ExperimentData, folder: Path) -> list[Path]:
    """Write the file of an experiment that varies a number; returns it, or nothing."""
    lines = extra_p_lines(data)
    if not lines or not json.loads(lines[0])["params"]:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    publish(folder / EXTRA_P, "\n".join(lines) + "\n", durable=False)
    return [folder / EXTRA_P]
