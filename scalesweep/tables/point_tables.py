"""The tables of runs and points: every run, and statistics of each point."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import EPOCH_PHASES, STATS, column
from scalesweep.analysis.stats import outliers, usual_spread
from scalesweep.analysis.table_io import typed_values
from scalesweep.analysis.types import Floats, Places
from scalesweep.core.files import digest_of
from scalesweep.core.joined_experiments import derived_values
from scalesweep.tables.machine_load import DISTURBED, LEFT_OUT, LOAD, OTHERS
from scalesweep.tables.points import ExperimentData, Point, point_id
from scalesweep.tables.provenance import FACTS

NAMED_HOSTS = 3


def identity_columns(
    axes: Sequence[str], points: Sequence[Point], samples: bool = False
) -> dict[str, Any]:
    """The columns that say which point a row is of: its parameters, with ``samples`` those of an
    epoch, its source, and how many runs it has and was to have."""
    columns = {name: typed_values([point.values[name] for point in points]) for name in axes}
    if samples:
        columns["samples"] = typed_values([point.samples for point in points], int)
    return columns | {
        "source": typed_values([point.source for point in points]),
        "repeats": np.array([point.rows.size for point in points], np.int64),
        "planned": np.array([point.planned for point in points], np.int64),
    }


def point_tables(data: ExperimentData, points: Sequence[Point]) -> dict[str, pd.DataFrame]:
    """``runs`` and ``points``.

    A quantity has a column for each statistic and phase (``analysis.metrics.column``), in its own
    unit. Measured, imported and simulated runs of one point have rows of their own and are never
    averaged together.
    """
    stated = [
        "; ".join(f"{m[0]}: n = {s.count:g}" for m in data.measures if (s := data.stated(p, m)))
        or None
        for p in points
    ]
    return {
        "runs": _runs(data, points),
        "points": pd.DataFrame(
            {
                "point_id": [point_id(point) for point in points],
                **identity_columns(data.axes, points, samples=True),
                **derived_columns(data, [point.values for point in points]),
                "stale": np.array([point.stale for point in points], np.int64),
                "threads_per_core": np.array([p.threads_per_core for p in points], np.float64),
                **({"stated": typed_values(stated)} if any(stated) else {}),
                **_statistics(data, points),
            }
        ),
    }


def _runs(data: ExperimentData, points: Sequence[Point]) -> pd.DataFrame:
    """Every planned run; ``warnings`` from its summary, ``outlier`` if it is one."""
    runs = data.experiment["runs"]
    rows = [data.row_of.get(run["run_id"]) for run in runs]
    table: dict[str, Any] = {
        name: typed_values([run[name] for run in runs]) for name in ("run_id", "repeat", "status")
    }
    table["cause"] = typed_values([run["cause"] or None for run in runs])
    for name in ("source", "started"):
        table[name] = _taken(data.summary[name].tolist(), rows)
    for name in data.axes:
        table[name] = typed_values([run["point"][name] for run in runs])
    table |= derived_columns(data, [run["point"] for run in runs])
    # One more entry, NaN, for those that have not finished.
    index = [-1 if row is None else row for row in rows]
    for metric, phase in data.measures:
        for stat in ("mean", "std") if phase in EPOCH_PHASES else ("mean",):
            padded = np.append(data.numbers(metric, stat, phase), math.nan)
            table[column(metric, stat, phase)] = padded[index]
    if data.experiment.get("control"):
        table["hosts"] = _taken(_host_sets(data), rows)
    table["warnings"] = _taken(data.summary["warnings"].tolist(), rows)
    loads = data.notes(LOAD)
    others = np.array([None if row is None else loads.get(row) for row in rows], np.float64)
    if np.isfinite(others).any():
        table[OTHERS] = others
        if (others > DISTURBED).any():
            kept = {row for point in points for row in point.rows.tolist()}
            why = [None if row is None or row in kept else "disturbed" for row in rows]
            table[LEFT_OUT] = typed_values(why)
    named = _outliers(data, points)
    table["outlier"] = typed_values([named.get(run["run_id"]) for run in runs])
    return pd.DataFrame(table)


def derived_columns(data: ExperimentData, points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Columns of the derived parameters that vary; none where nothing is derived."""
    at = [derived_values(data.experiment, point) for point in points]
    names = dict.fromkeys(chain.from_iterable(at))
    return {name: typed_values([values.get(name) for values in at]) for name in names}


def _taken(values: Sequence[Any], rows: Sequence[int | None]) -> Any:
    return typed_values([None if row is None else values[row] for row in rows])


def _host_sets(data: ExperimentData) -> list[str | None]:
    """Where each run of the summary was: the names of few hosts, of many what tells them apart."""
    names = {row: sorted(facts["hosts"]) for row, facts in data.notes(FACTS).items()}
    words = {
        row: ", ".join(hosts) if len(hosts) <= NAMED_HOSTS
        else f"{len(hosts)} hosts ({digest_of(hosts, 3)})"
        for row, hosts in names.items() if hosts
    }  # fmt: skip
    return [words.get(row) for row in range(len(data.summary))]


def _outliers(data: ExperimentData, points: Sequence[Point]) -> dict[str, str]:
    """Run id -> why it is an outlier among the repeats of its point, in total time or metric."""
    shown = [m for m in data.measures if m[0] == "total_time" or m[1] == "run"]
    run_ids = data.summary["run_id"].tolist()
    why_of: dict[str, list[str]] = {}
    for metric, phase in shown:
        values = data.numbers(metric, "mean", phase)
        there = [point.rows[np.isfinite(values[point.rows])] for point in points]
        usual = usual_spread(values[rows] for rows in there)
        for rows in there:
            for place, why in outliers(values[rows], usual).items():
                reason = f"{column(metric, 'mean', phase)}: {why}"
                why_of.setdefault(run_ids[rows[place]], []).append(reason)
    return {run_id: "; ".join(reasons) for run_id, reasons in why_of.items()}


def _statistics(data: ExperimentData, points: Sequence[Point]) -> dict[str, Floats]:
    """Statistics of every measure over the repeats of every point, by column name."""
    rows = np.concatenate([point.rows for point in points] or [np.empty(0, np.intp)])
    of = np.repeat(np.arange(len(points)), [point.rows.size for point in points])
    result = {}
    for metric, phase in data.measures:
        means, stds = (
            pd.Series(data.numbers(metric, stat, phase)[rows]) for stat in ("mean", "std")
        )
        table = _over_repeats(means, stds, of).reindex(range(len(points)))
        for place, point in enumerate(points):
            if stated := data.stated(point, (metric, phase)):
                table.loc[place, "std"] = stated.std
        ends = [data.mean(point, (metric, phase)) for point in points]
        table["low"], table["high"] = ([getattr(e, end) for e in ends] for end in ("low", "high"))
        for stat in STATS:
            result[column(metric, stat, phase)] = table[stat].to_numpy(np.float64)
    return result


def _over_repeats(means: "pd.Series[float]", stds: "pd.Series[float]", of: Places) -> pd.DataFrame:
    """Mean, median, std and cv by point of the means and deviations of runs, ``of`` so many points.

    ``std`` is that of all values of all runs (ddof 0): the runs' own variance and that of their
    means. A number that has no spread within its run (a plain metric) is one value per repeat:
    ``std`` is then that of those values, and missing for one repeat.
    """
    by = means.groupby(of)
    table = by.agg(["mean", "median", "count"])
    inside = (stds**2).where(means.notna()).groupby(of).agg(["mean", "count"])
    whole = inside["count"] == table["count"]
    between = by.var(ddof=0).where((table["count"] > 1) | whole)
    table["std"] = np.sqrt(between + inside["mean"].where(whole, 0.0))
    table["cv"] = by.std(ddof=1) / table["mean"].replace(0.0, math.nan).abs()
    return table
