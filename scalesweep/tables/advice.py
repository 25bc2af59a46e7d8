"""What is asked of a campaign, and what may be measured to answer it (docs/budget.md)."""

from collections.abc import Callable, Mapping

import pandas as pd

from scalesweep.config.campaign import Campaign
from scalesweep.core.plan_format import Plan
from scalesweep.tables.advice_choices import ask_choices
from scalesweep.tables.advice_points import PointOf, Prices
from scalesweep.tables.advice_series import ask_series
from scalesweep.tables.advice_study import Gather, Study
from scalesweep.tables.advice_target import Wanted
from scalesweep.tables.points import ExperimentData


def make_study(
    campaign: Campaign,
    plan: Plan,
    summary: pd.DataFrame,
    prices: Prices,
    wanted: Wanted,
    budget: float,
    left_out: Mapping[str, Callable[[PointOf], bool]],
) -> Study:
    """What is asked of a campaign by ``wanted``, from what has been measured.

    Options are runs that cost no more than ``budget`` (node-hours).
    ``left_out``: by experiment whether the campaign excludes a point.
    """
    study = Study()
    entries = {entry["name"]: entry for entry in plan["experiments"]}
    for experiment in campaign.experiments:
        if experiment.control or wanted.experiment not in ("", experiment.name):
            continue
        data = ExperimentData(summary, entries[experiment.name])
        gather = Gather(study, data, experiment, prices, wanted, budget, left_out[experiment.name])
        if wanted.asks_series and data.scale in data.axes and experiment.scaling != "none":
            ask_series(gather)
        elif wanted.experiment and wanted.asks_series and not wanted.anything:
            gather.refuse(
                f"{experiment.name}: nothing is predicted: it needs scaling: weak or strong, and "
                f"several numbers of {data.scale}"
            )
        if wanted.asks_choices:
            ask_choices(gather)
    return study
