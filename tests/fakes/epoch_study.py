"""A campaign of made-up epoch times, from records to tables."""

from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.aspects.make_tables import make_tables
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.summary import build_summary
from tests.fakes.plan import whole_plan
from tests.fakes.records import times, write_run


class Study:
    """A made-up campaign: runs with constant or given epoch times, and their plan."""

    def __init__(self, root: Path, name: str = "io", scaling: str = "weak") -> None:
        self.root = root
        said = {"name": name, "benchmark": "data_loading", "scaling": scaling, "runs": []}
        (self.experiment,) = whole_plan({"experiments": [said]})["experiments"]
        self.records: list[Path] = []

    def run(
        self,
        point: dict[str, Any],
        seconds: float | None,
        *,
        samples: int | None = None,
        arrays: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """Add a run whose epochs take ``seconds`` (None: it failed); returns its id."""
        runs = self.experiment["runs"]
        run_id = f"{self.experiment['name']}-{len(runs)}"
        repeat = sum(run["point"] == point for run in runs)
        done = seconds is not None or arrays is not None
        runs.append({
            "run_id": run_id, "repeat": repeat, "point": point,
            "status": "done" if done else "failed", "cause": "" if done else "TIMEOUT",
        })  # fmt: skip
        names = [n for n in point if any(r["point"][n] != point[n] for r in runs)]
        axes = set(names) | set(self.experiment["axes"])
        self.experiment["axes"] = sorted(axes, key=lambda n: (n != "ranks", n))
        if not done:
            return run_id
        if arrays is None:
            same = np.full((2, point["ranks"]), seconds)
            arrays = times(same, same)
        changes = {
            "point": point, "repeat": repeat, "site": "here", "resources": {},
            "work": {"samples_per_epoch": samples or 100 * point["ranks"]}, **changes,
        }  # fmt: skip
        self.records.append(write_run(self.root / "runs", run_id, arrays, **changes))
        return run_id

    def results(self) -> ExperimentResults:
        """The experiment with its tables."""
        plan = whole_plan({"experiments": [self.experiment]})
        tables = make_tables(build_summary(self.records), plan, runs=self.root / "runs")
        return ExperimentResults(plan["experiments"][0], tables[self.experiment["name"]])

    def tables(self) -> Any:
        """The tables alone."""
        return self.results().tables
