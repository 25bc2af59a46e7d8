"""What runs have measured as a frame: a row per run, metric and phase."""

import numpy as np
import pandas as pd

from scalesweep.analysis.metrics import (
    EPOCH_METRICS,
    EPOCH_PHASES,
    NEVER,
    column,
    compared,
    derived_names,
    quantities_of,
)
from scalesweep.core.plan_format import PlanExperiment

METRIC = "metric"  # kind of these rows in a history
FORMULA = " = "  # between the name of a derived metric and its formula
PHASES = ("later", "run", "init")  # of a metric the first there is tells most
_MAIN = "total_throughput"  # of a benchmark that names no main metric


def metrics_of(summary: pd.DataFrame, entry: PlanExperiment) -> pd.DataFrame:
    """The means of the runs of an experiment, as its summary has them: ``run_id``, ``metric`` and
    its ``title``, ``phase``, ``value``, ``unit``, ``better``, ``scope``, ``main``, ``judged``.

    ``main``: the main metric (the first one, if none is named) in its steady phase. Judged are that
    and metrics of the whole run: times and rates of epochs say the same in several ways. Not what a
    model has learned, unless the benchmark says that its runs train alike. A derived metric's name
    has its formula: another one is another metric.
    """
    summary = summary[summary["run_id"].isin([run["run_id"] for run in entry["runs"]])]
    quantities, derived = quantities_of(summary, entry["benchmark"]), entry.get("derived", {})
    for name in derived_names(summary, entry["benchmark"]) - derived.keys():
        del quantities[name]  # of another experiment that shares runs
    named = {
        column(name, "mean", phase): (name, phase)
        for name in quantities
        # A program may report one of our own metrics itself, as one number.
        for phase in ((*EPOCH_PHASES, "run") if name in EPOCH_METRICS else ("run",))
    }
    there = [name for name in named if name in summary]
    rows: pd.DataFrame = summary[["run_id", *there]].melt("run_id", var_name="column")
    rows = rows.astype({"value": float})
    rows = rows[np.isfinite(rows["value"])]
    metrics = [named[name][0] for name in rows["column"]]
    wanted = [entry["main_metric"], _MAIN, *entry.get("metrics", ()), *metrics]
    main = next((name for name in wanted if name in metrics), None)
    rows = rows.assign(metric=metrics, phase=[named[name][1] for name in rows["column"]])
    of_main = rows["metric"] == main
    rank = rows["phase"].map(PHASES.index).where(of_main)
    steady = of_main & (rank == rank.groupby(rows["run_id"]).transform("min"))
    never = {n for n in quantities if compared(n, entry.get("compare", {}), main) == NEVER}
    titles = {name: f"{name}{FORMULA}{of['formula']}" for name, of in derived.items()}
    del rows["column"]
    return rows.assign(
        kind=METRIC,
        metric=[titles.get(name, name) for name in metrics],
        title=[quantities[name].label for name in metrics],
        unit=[quantities[name].unit for name in metrics],
        better=[quantities[name].better for name in metrics],
        scope=[quantities[name].scope for name in metrics],
        main=steady,
        judged=(steady | (rows["phase"] == "run")) & ~rows["metric"].isin(never),
    )
