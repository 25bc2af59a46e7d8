"""Which points to run will not fit the memory of their ranks, in a line of the plan."""

import csv
from pathlib import Path

from scalesweep.analysis.memory_model import CONSTANTS, TOO_LARGE, UNCERTAIN, MemoryFit
from scalesweep.config.memory import PointMemory, point_memory
from scalesweep.config.shapes import planned
from scalesweep.core.files import canonical_json
from scalesweep.core.formatting import counted, listed, number, text_of
from scalesweep.core.plan_format import PlanExperiment

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
        if run.get("to_run", True) and not run["reused"]
    }
    fit = fit_of(tables)
    names = dict.fromkeys([*experiment["axes"], *experiment["linked"]])  # may be in both
    said: dict[str, list[tuple[float, str]]] = {TOO_LARGE: [], UNCERTAIN: []}
    missing: dict[str, None] = {}
    stopped: dict[str, int] = {}
    judged = 0
    for point in points.values():
        memory = point_memory(planned(experiment), point, experiment["benchmark"])
        if isinstance(memory, str):
            missing[memory] = None
        elif memory is not None and memory.obstacle:
            stopped[memory.obstacle] = stopped.get(memory.obstacle, 0) + 1
        if not isinstance(memory, PointMemory) or memory.device is None:
            continue
        judged += 1
        needed = fit.needed(memory.parts)
        verdict = fit.verdict(memory.parts, memory.device)
        if verdict in said:
            at = ", ".join(f"{name} {text_of(point[name])}" for name in names if name in point)
            size = f"{number(needed / 2**30)} of {number(memory.device / 2**30)} GiB"
            said[verdict].append((needed / memory.device, f"{size} at {at}" if at else size))
    parts = [
        f"{counted(len(texts), 'point')} of {judged:,} {words}: "
        + listed([text for _, text in sorted(texts)], _SHOWN)
        for verdict, words in ((TOO_LARGE, "will not fit, likely"), (UNCERTAIN, "may not fit"))
        if (texts := said[verdict])
    ]
    parts += [f"{counted(n, 'point')} will not start: {why}" for why, n in stopped.items()]
    if missing:
        parts.append(f"not judged without {listed([*missing], 2)}")
    if not parts:
        return ""
    known = f"fitted to {counted(fit.peaks, 'peak')}" if fit.peaks else "by the default constants"
    return f"memory in {experiment['name']} ({known}): {'; '.join(parts)}"
