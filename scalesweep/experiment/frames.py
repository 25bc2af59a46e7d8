"""The tables of a results folder as frames, for notebooks and scripts: ``scalesweep.load``."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scalesweep.analysis.table_io import read_table
from scalesweep.core.errors import UserError

# Frame -> table.
_TABLES = {"breakdown": "efficiency"}
# Columns of findings that hold JSON.
_PARTS = ("numbers", "row", "runs", "evidence")


@dataclass(frozen=True)
class Results:
    """The tables of all experiments of a results folder; the first column is ``experiment``.

    ``points``: a row per point, with mean and 95 % interval of each metric. ``runs``: a row per
    planned run. ``comparisons``: ratios of points with their p values (``point_id`` and ``base_id``
    are those of ``points``). ``breakdown``: where the time of a step goes. ``findings``: what the
    report says. A frame that no experiment has a table of is empty.
    """

    points: pd.DataFrame
    runs: pd.DataFrame
    comparisons: pd.DataFrame
    breakdown: pd.DataFrame
    findings: pd.DataFrame


def load(results: str | Path) -> Results:
    """The tables below a results folder.

    Raises UserError if there are none, or one is not whole.
    """
    folder = Path(results) / "tables"
    if not any(folder.glob("*/points.parquet")):
        raise UserError(f"{folder}: no tables; 'scalesweep report' makes them")
    names = ("points", "runs", "comparisons", "breakdown", "findings")
    frames = {name: _all(folder, _TABLES.get(name, name)) for name in names}
    for name in _PARTS:
        if name in frames["findings"]:
            frames["findings"][name] = frames["findings"][name].map(json.loads)
    return Results(**frames)


def _all(folder: Path, table: str) -> pd.DataFrame:
    """A table of all experiments, one below the other."""
    frames = []
    for path in sorted(folder.glob(f"*/{table}.parquet")):
        frame = read_table(path)
        frame.attrs = {}
        rest = frame.drop(columns="experiment", errors="ignore")
        rest.insert(0, "experiment", path.parent.name)
        frames.append(rest)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"experiment": []})
