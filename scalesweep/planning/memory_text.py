"""Which points to run will not fit the memory of their ranks, in a line of the plan."""

import csv
from pathlib import Path

from scalesweep.analysis.memory_model import CONSTANTS, TOO_LARGE, UNCERTAIN, MemoryFit
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, listed, number, text_of
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.planning.planned_shapes import planned, point_memory

FITTED = "memory_fit.csv"
_SHOWN = 3


def fit_of(tables: Path) -> MemoryFit:
    """The constants that the tables of an earlier call fitted (``memory_fit.csv``); without them
    the default ones."""
    try:
        with (tables / FITTED).open(encoding="utf-8", newline="") as file:
            row = next(iter(csv.DictReader(file)))
        constants = {name: float(row[name]) for name in (*CONSTANTS, "spread")}
        return MemoryFit(**constants, peaks=int(row["peaks"]))
    except (OSError, StopIteration, KeyError, ValueError, TypeError):
        return MemoryFit()


def memory_line(experiment: PlanExperiment, tables: Path) -> str:
    """Points to run that will not fit or may not, with their bytes; empty where all fit, or nothing
    is known. ``tables``: folder of the experiment's tables."""
    if "memory" not in experiment:
        return ""
    points = {
        canonical_json(run["point"]): run["point"]
        for run in experiment["runs"]
        if run["to_run"] and not run["reused"]
    }
    fit = fit_of(tables)
    names = dict.fromkeys([*experiment["axes"], *experiment["linked"]])  # may be in both
    words = {TOO_LARGE: "will not fit, likely", UNCERTAIN: "may not fit"}
    said: dict[str, list[str]] = {}
    for point in points.values():
        memory = point_memory(planned(experiment), point, experiment["benchmark"])
        if isinstance(memory, str):
            said.setdefault(f"not judged without {memory}", [])
        elif memory is not None and memory.obstacle:
            said.setdefault(f"points that will not start: {memory.obstacle}", [])
        elif memory is not None and memory.device is not None:
            why = words.get(fit.verdict(memory.parts, memory.device))
            at = ", ".join(f"{name} {text_of(point[name])}" for name in names if name in point)
            size = f"{number(fit.needed(memory.parts) / 2**30)} of {number(memory.device / 2**30)}"
            if why:
                said.setdefault(why, []).append(f"{size} GiB at {at or 'the point'}")
    if not said:
        return ""
    parts = [
        f"{counted(len(of), 'point')} of {len(points):,} {why}: {listed(of, _SHOWN)}" if of else why
        for why, of in said.items()
    ]
    known = f"fitted to {counted(fit.peaks, 'peak')}" if fit.peaks else "by the default constants"
    return f"memory in {experiment['name']} ({known}): {'; '.join(parts)}"
