"""A results folder for notebooks and scripts: what ``scalesweep.load`` returns.

Nothing here starts a run or changes the folder.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scalesweep.analysis.table_io import read_table
from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import PLAN, PlanExperiment, read_plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Frame -> table.
_TABLES = {"breakdown": "efficiency"}
# Columns of findings that hold JSON.
_PARTS = ("numbers", "row", "runs", "evidence")
_SUMMARY = ("run_at", "efficiency", "loss", "state", "next")


@dataclass(frozen=True)
class Results:
    """The tables of all experiments of a results folder; the first column is ``experiment``.

    ``points``: a row per point, with mean and 95 % interval of each metric. ``runs``: a row per
    planned run. ``comparisons``: ratios of points with their p values (``point_id`` and ``base_id``
    are those of ``points``). ``breakdown``: where the time of a step goes. ``findings``: what the
    report says. A frame that no experiment has a table of is empty. ``attrs["units"]`` of a frame
    has label, unit, better and scope by column.
    """

    folder: Path
    points: pd.DataFrame
    runs: pd.DataFrame
    comparisons: pd.DataFrame
    breakdown: pd.DataFrame
    findings: pd.DataFrame

    @property
    def summary(self) -> pd.DataFrame:
        """The table on the report's first screen, a row per experiment: ``run_at``, ``efficiency``
        there and beyond, ``loss`` (the main one), ``state`` (clear or open), ``next``."""
        from scalesweep.experiment.load import load_results
        from scalesweep.findings.table import findings_in
        from scalesweep.report.first_screen import first_screen

        plan, rows = read_plan(self.folder / PLAN), []
        for entry in plan["experiments"]:
            results = load_results(entry, self.folder / "tables")
            said = findings_in(results) or []
            line = first_screen(plan, results, said, (), {}, [])["line"]
            shown = {name: getattr(line, name) for name in _SUMMARY}
            rows.append({"experiment": entry["name"], **shown})
        return pd.DataFrame(rows, columns=["experiment", *_SUMMARY])

    def samples(self, run_id: str) -> dict[str, NDArray[np.float64]]:
        """The arrays that a run recorded: ``[step, rank]`` or ``[epoch, rank]``, by name, in s.

        Raises UserError for a run that has none.
        """
        paths = sorted(self.folder.glob(f"runs/*/{run_id}/samples.npz"))
        if not paths:
            raise UserError(f"{self.folder}: run {run_id!r} has no samples.npz")
        with np.load(paths[0]) as arrays:
            return dict(arrays)

    def figure(
        self, name: str, experiment: str | None = None, axes: "Axes | Sequence[Axes] | None" = None
    ) -> "Figure":
        """A figure of the report as matplotlib's, such as ``scaling``: the first whose name begins
        so, of later epochs if there are any.

        ``axes``: draws its first panel, or its first panels, on these of yours instead, without
        titles and legend, and returns the figure that they are in. Raises UserError naming the
        figures that there are.
        """
        from matplotlib import rc_context

        from scalesweep.aspects.draw import draw
        from scalesweep.experiment.load import load_results
        from scalesweep.figures.theme import STYLE

        entry = self._entry(experiment)
        made = draw(load_results(entry, self.folder / "tables"))
        of_name = [drawing for drawing in made if drawing.name.startswith(name)]
        if of_name:
            drawing = min(of_name, key=lambda drawing: "later" not in drawing.name)
            if axes is None:
                with rc_context(fname=STYLE):
                    return drawing.figure
            own = list(axes) if isinstance(axes, Iterable) else [axes]
            drawing.draw_on(own)
            return cast("Figure", own[0].figure)
        names = ", ".join(drawing.name for drawing in made) or "none"
        raise UserError(f"{entry['name']}: no figure {name!r}; allowed: {names}")

    def predict(self, ranks: Sequence[int], experiment: str | None = None) -> pd.DataFrame:
        """Predictions of counts that were not measured, a row per series, metric and count, with
        95 % intervals; ``refused`` says why there is none. Empty if nothing scales."""
        from scalesweep.aspects.prediction import prediction_rows
        from scalesweep.table.declared import frame_of
        from scalesweep.tables.points import ExperimentData
        from scalesweep.tables.predictable import predicting_machine

        plan = read_plan(self.folder / PLAN)
        summary = read_table(self.folder / "summary.parquet")
        data = ExperimentData(summary, self._entry(experiment))
        rows = prediction_rows(data, sorted(set(ranks)), predicting_machine(summary, plan))
        frame = frame_of(rows)
        return pd.DataFrame() if frame is None else frame

    def compare(self, base: "Results | str | Path") -> pd.DataFrame:
        """These results over those of another folder: a row per point, metric and phase with ratio,
        95 % interval, p values and verdict (docs/reference/files.md, compare/points.csv)."""
        from scalesweep.compare.page import compare_sides, make_tables
        from scalesweep.compare.sides import folder_side

        folder = base.folder if isinstance(base, Results) else Path(base)
        sides = folder_side("base", folder), folder_side("new", self.folder)
        return make_tables(compare_sides(*sides))["points"]

    def _entry(self, experiment: str | None) -> PlanExperiment:
        """An experiment of the plan; without a name the only one."""
        entries = {entry["name"]: entry for entry in read_plan(self.folder / PLAN)["experiments"]}
        if experiment is None and len(entries) == 1:
            return next(iter(entries.values()))
        if experiment not in entries:
            said = "name an experiment" if experiment is None else f"no experiment {experiment!r}"
            raise UserError(f"{self.folder}: {said}; allowed: {', '.join(entries)}")
        return entries[experiment]


def load(results: str | Path) -> Results:
    """The tables below a results folder.

    Raises UserError if there are none, or one is not whole.
    """
    folder = Path(results)
    if not any(folder.glob("tables/*/points.parquet")):
        raise UserError(f"{folder / 'tables'}: no tables; 'scalesweep report' makes them")
    names = ("points", "runs", "comparisons", "breakdown", "findings")
    frames = {name: _all(folder / "tables", _TABLES.get(name, name)) for name in names}
    for name in _PARTS:
        if name in frames["findings"]:
            frames["findings"][name] = frames["findings"][name].map(json.loads)
    return Results(folder, **frames)


def _all(folder: Path, table: str) -> pd.DataFrame:
    """A table of all experiments, one below the other."""
    frames, units = [], {}
    for path in sorted(folder.glob(f"*/{table}.parquet")):
        frame = read_table(path)
        units.update(frame.attrs.get("units", {}))
        frame.attrs = {}
        rest = frame.drop(columns="experiment", errors="ignore")
        rest.insert(0, "experiment", path.parent.name)
        frames.append(rest)
    made = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"experiment": []})
    made.attrs = {"units": units}
    return made
