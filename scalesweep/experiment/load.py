"""Reads an experiment's tables back."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pandas as pd

from scalesweep.analysis.table_io import read_table
from scalesweep.core.plan_format import PlanExperiment, PlanRun
from scalesweep.core.status import Status
from scalesweep.experiment.results import ExperimentResults


def lasting(entry: PlanExperiment) -> PlanExperiment:
    """An entry of plan.json with all values blank that change with other experiments (places in
    the order of runs) or with time (estimates): neither tables nor figures are made of them.

    ``detail`` is left to finished runs, of which it says what was accepted."""
    runs: list[PlanRun] = [
        {
            **run,
            "position": 0,
            "reused": False,
            "to_run": False,
            "detail": run["detail"] if run["status"] == Status.DONE else "",
        }
        for run in entry["runs"]
    ]
    return {**entry, "wall_s": None, "runs": runs}


class _Tables(Mapping[str, "pd.DataFrame | None"]):
    """The tables in a folder, each read when it is first asked for; None where there is none."""

    def __init__(self, folder: Path, names: Collection[str] | None) -> None:
        self._folder = folder
        there = sorted(path.stem for path in folder.glob("*.parquet"))
        self._names = [name for name in there if names is None or name in names]
        self._read: dict[str, pd.DataFrame | None] = {}

    def __getitem__(self, name: str) -> pd.DataFrame | None:
        if name not in self._read:
            path = self._folder / f"{name}.parquet"
            self._read[name] = read_table(path) if name in self._names else None
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load_results(
    entry: PlanExperiment, tables: Path, names: Collection[str] | None = None
) -> ExperimentResults:
    """The experiment ``entry`` of a plan with its tables under ``tables``, of ``names`` if given.

    A table is read when it is used; that raises UserError if it is not whole.
    """
    return ExperimentResults(entry, _Tables(tables / str(entry["name"]), names))
