"""What the machine did before and after each run: the table `canary`, a row per run and look."""

import json

import pandas as pd

from scalesweep.analysis.table_io import typed_values
from scalesweep.tables.canary_rates import CANARY
from scalesweep.tables.points import ExperimentData

COMPUTE, MEMORY = "canary_flops", "canary_bytes_per_s"


def canary_table(data: ExperimentData) -> pd.DataFrame | None:
    """A row per run and look, in the order of the plan; None where no run has a canary.

    Columns: ``run_id``, ``repeat``, varying parameters, ``source``, ``started``, ``look``
    (``before``, ``after``), and of the slowest host ``canary_flops`` (FLOP/s) and
    ``canary_bytes_per_s``.
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
            values = {COMPUTE: rates["compute"][1], MEMORY: rates["memory"][1]}
            rows.append(head | {"look": when} | values)
    if not rows:
        return None
    frame = pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in rows[0]})
    frame.attrs["units"] = {}
    return frame
