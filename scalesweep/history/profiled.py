"""Parts of a step in the profiled runs of a campaign, as its tables have them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scalesweep.analysis.parquet import read_frame
from scalesweep.core.formatting import finite
from scalesweep.core.plan_format import PlanExperiment, PlanProfile
from scalesweep.core.status import Status
from scalesweep.history.store import PART

# Tables with a row per profiled run and part: the column that names the part.
_TABLES = {"trace": "part", "timeline": "phase"}
Rows = list[Mapping[str, Any]]


def profiled_runs(results: Path, entry: PlanExperiment) -> Iterator[tuple[PlanProfile, Rows]]:
    """The profiled runs of an experiment whose tables tell the parts of a step; of each part a row
    with its ms, and one with its share (unit 1).

    ``results``: the results folder; ``entry``: of the experiment in the plan. Shares are as
    stated, since phases of a timeline overlap.
    """
    rows: dict[str, Rows] = {}
    for table, name in _TABLES.items():
        path = results / "tables" / entry["name"] / f"{table}.parquet"
        if not path.is_file():
            continue
        frame = read_frame(path, ["run_id", name, "ms", "share"])
        for run_id, part, ms, share in frame.itertuples(index=False):
            for value, unit, title in ((ms, "ms", str(part)), (share, "1", f"share of {part}")):
                if finite(value):
                    row = {
                        "kind": PART, "metric": title, "phase": table, "value": float(value),
                        "unit": unit, "better": "lower", "main": False, "judged": False,
                    }  # fmt: skip
                    rows.setdefault(str(run_id), []).append(row)
    for run in entry["profiles"]:
        if run["status"] == Status.DONE and run["run_id"] in rows:
            yield run, rows[run["run_id"]]
