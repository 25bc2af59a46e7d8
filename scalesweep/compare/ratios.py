"""Ratios new over base at each point: one frame, a row a point, metric and phase, with its verdict.

A verdict goes by the plain 95 % interval of its own ratio. As many are looked at together, each
also has a p value corrected for that. What the page says first of an experiment is corrected for
all that it might have said.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from scalesweep.analysis.multiple import holm_p
from scalesweep.compare.joined import BASE, NEW, Joined
from scalesweep.compare.sides import Side
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.judge.change import CHANGED, INCONCLUSIVE, moments
from scalesweep.judge.change import ratios as ratios_of
from scalesweep.judge.metrics import metrics_of

ONLY_BASE, ONLY_NEW = "only base", "only new"
# In at most so many comparisons any change that is said first is a false one: Welch's t of few
# repeats is a bit liberal far out.
LEVEL = 0.04
CLAIM = ["experiment", "metric", "phase"]
_WHAT = ["pair", "metric", "phase", "unit", "better", "scope"]
_NEVER = "not compared: of runs that neither trained to a target nor a fixed amount"


def ratios(joined: Joined, base: Side, new: Side) -> pd.DataFrame:
    """Every metric and phase of every pair, by experiment, its main metric first.

    Metrics match by name, unit, direction and scope. ``pair`` is that of ``joined``; of both
    sides there are ``repeats``, ``mean``, ``low`` and ``high``, of the ratio what
    ``judge.change.ratios`` gives. ``stands``: a change of a main metric that
    remains one among all of its experiment.
    """
    sides = {BASE: base, NEW: new}
    values = {name: _values(side, joined.runs[name]) for name, side in sides.items()}
    every = pd.concat(values.values(), ignore_index=True)
    about = every.groupby(_WHAT, sort=False)[["title", "main", "judged"]].first()
    groups = [moments(of, _WHAT).reindex(about.index) for of in values.values()]
    better = about.index.get_level_values("better")
    rows = about.join(ratios_of(groups[0], groups[1], better))
    for name, alone, group in zip(sides, (ONLY_NEW, ONLY_BASE), groups, strict=True):
        rows[[f"{name}_mean", f"{name}_low", f"{name}_high"]] = group[["mean", "low", "high"]]
        rows[f"{name}_repeats"] = group["repeats"].fillna(0).astype(int)
        rows.loc[rows[f"{name}_repeats"] == 0, ["verdict", "reason"]] = [alone, ""]
    rows = rows.reset_index()
    never = ~rows.pop("judged") & (rows["phase"] == "run")
    never &= ~rows["verdict"].isin([ONLY_BASE, ONLY_NEW])
    rows.loc[never, ["verdict", "reason"]] = [INCONCLUSIVE, _NEVER]
    rows.loc[never, ["ratio", "low", "high", "se", "df", "p"]] = np.nan
    of_pair = joined.pairs.loc[rows["pair"]].reset_index(drop=True)
    rows.insert(0, "experiment", of_pair["experiment"])
    places = {name: pd.factorize(rows[name])[0] for name in ("experiment", "metric", "phase")}
    order = rows.assign(**places, main=~rows["main"])
    rows = rows.loc[order.sort_values(["experiment", "main", "metric", "phase", "pair"]).index]
    tested = rows[rows["p"].notna()]
    family = [of_pair["benchmark"], tested["metric"], tested["phase"]]
    # Benjamini and Hochberg (1995): points share no run, so their p values are independent.
    rows["p_adjusted"] = _corrected(false_discovery_control, tested, family)
    first = tested[tested["main"]]
    rows["p_family"] = _corrected(holm_p, first, [first["experiment"]])
    rows["stands"] = rows["verdict"].isin(CHANGED) & (rows["p_family"] <= LEVEL)
    return rows.reset_index(drop=True)


def _values(side: Side, runs: pd.DataFrame) -> pd.DataFrame:
    """What the runs of a side have measured, each of a run once, with the pair of the run."""
    rows = pd.concat([metrics_of(side.summary, entry) for entry in _entries(side)])
    rows = rows.drop_duplicates(["run_id", "metric", "phase"])
    return rows.merge(runs[["run_id", "pair"]], on="run_id")


def _entries(side: Side) -> Iterator[PlanExperiment]:
    """The experiments of a side; runs that no plan has are some of their benchmark."""
    yield from side.plan["experiments"]
    planned = {run["run_id"] for entry in side.plan["experiments"] for run in entry["runs"]}
    others = side.summary[~side.summary["run_id"].isin(planned)]
    for benchmark, own in others.groupby("benchmark"):
        runs = [{"run_id": run_id} for run_id in own["run_id"]]
        yield cast(PlanExperiment, {"benchmark": benchmark, "runs": runs, "main_metric": None})


def _corrected(correct: Any, rows: pd.DataFrame, family: Any) -> "pd.Series[float]":
    """The p values of each family, corrected for their number."""
    by_family = rows["p"].groupby([of.loc[rows.index] for of in family])
    return by_family.transform(lambda own: np.array(correct(own.tolist())))
