"""A campaign of made-up epoch times, from records to tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.aspects.make_tables import make_tables
from scalesweep.core.record import write_record
from scalesweep.tables.summary import build_summary


class Study:
    """A made-up campaign: runs with constant or given epoch times, and their plan."""

    def __init__(self, root: Path, name: str = "io", scaling: str = "weak") -> None:
        self.root = root
        self.experiment: dict[str, Any] = {
            "name": name, "benchmark": "data_loading", "version": 1, "scaling": scaling,
            "scale": "ranks", "scale_parameters": ["ranks"], "work": [], "main_metric": None,
            "metrics": {}, "linked": [],
            "axes": [], "fixed": {}, "parameters": {}, "runs": [], "excluded": [],
            "profiles": [], "points": 0,
        }  # fmt: skip
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
            "run_id": run_id, "repeat": repeat, "point": point, "detail": "", "reused": False,
            "status": "done" if done else "failed", "cause": "" if done else "TIMEOUT",
        })  # fmt: skip
        names = [n for n in point if any(r["point"][n] != point[n] for r in runs)]
        axes = set(names) | set(self.experiment["axes"])
        self.experiment["axes"] = sorted(axes, key=lambda n: (n != "ranks", n))
        if not done:
            return run_id
        if arrays is None:
            same = np.full((2, point["ranks"]), seconds)
            arrays = {"local_times": same, "global_times": same}
        record = {
            "run_id": run_id, "benchmark": "data_loading", "version": 1, "point": point,
            "repeat": repeat, "site": "here", "source": "measured", "started": "2024-01-01",
            "ended": "2024-01-01", "wall_s": 1.0, "attempt": 1, "phases": {}, "metrics": {},
            "work": {"samples_per_epoch": samples or 100 * point["ranks"]}, "resources": {},
            "environment": {}, "notes": {}, "git": None, "command": [], **changes,
        }  # fmt: skip
        np.savez(self.root / "samples.npz", **arrays)
        path = write_record(self.root / "runs" / run_id, record, self.root / "samples.npz")
        self.records.append(path)
        return run_id

    def tables(self) -> dict[str, pd.DataFrame]:
        return make_tables(build_summary(self.records), {"experiments": [self.experiment]})[
            self.experiment["name"]
        ]
