"""What the machine did before and after each run: the table `canary`, a row per run and look."""

import json
import math

import numpy as np
import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.tables.canary_rates import CANARY
from scalesweep.tables.points import ExperimentData

# Columns, by kind.
COLUMNS = {
    "compute": "canary_flops",
    "memory": "canary_bytes_per_s",
    "allreduce": "canary_bus_bandwidth",
    "read": "canary_read_bandwidth",
}


def canary_table(data: ExperimentData) -> pd.DataFrame | None:
    """A row per run and look, in the order of the plan; None where no run has a canary.

    Columns: ``run_id``, ``repeat``, varying parameters, ``source``, ``started``, ``look``
    (``before``, ``after``), and of the slowest host ``canary_flops`` (FLOP/s) and
    ``canary_bytes_per_s``; ``canary_bus_bandwidth`` and ``canary_read_bandwidth`` (bytes/s) where
    any run has them.
    """
    texts = data.texts(CANARY)
    started, sources = data.summary["started"].tolist(), data.summary["source"].tolist()
    rows = []
    for run in data.experiment["runs"]:
        row = data.row_of.get(run["run_id"])
        if row is None or texts[row] is None:
            continue
        looks = json.loads(texts[row])
        head = {"run_id": run["run_id"], "repeat": run["repeat"]}
        head |= {name: run["point"][name] for name in data.axes}
        head |= {"source": sources[row], "started": started[row]}
        for when, rates in looks.items():
            values = {COLUMNS[kind]: float(rate) for kind, (_, rate) in rates.items()}
            rows.append(head | {"look": when} | values)
    if not rows:
        return None
    known = {name for row in rows for name in row}
    names = [name for name in rows[0] if name not in COLUMNS.values()]
    frame = pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in names})
    for name in COLUMNS.values():
        if name in known:
            frame[name] = np.array([row.get(name, math.nan) for row in rows], np.float64)
    frame.attrs["units"] = {}
    return frame
