"""What is asked of a campaign, and what may be measured to answer it (docs/guide/budget.md)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from scalesweep.adaptive.advice_choices import ask_choices
from scalesweep.adaptive.advice_points import Prices
from scalesweep.adaptive.advice_series import ask_series
from scalesweep.adaptive.advice_study import Gather, Study
from scalesweep.adaptive.advice_target import Wanted
from scalesweep.adaptive.stops import stopped_at
from scalesweep.config.campaign import Campaign
from scalesweep.config.grid import exclusions
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.plan_format import Plan
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.witnesses import predicting_machine


def make_study(
    campaign: Campaign,
    plan: Plan,
    summary: pd.DataFrame,
    prices: Prices,
    wanted: Wanted,
    budget: float,
) -> Study:
    """What is asked of a campaign by ``wanted``, from what has been measured.

    Options are runs that cost no more than ``budget`` (node-hours).
    """
    study, left_out, stopped = Study(), _excluded(campaign), stopped_at(campaign)
    machine = predicting_machine(summary, plan)  # as the page and `scalesweep predict` know it
    entries = {entry["name"]: entry for entry in plan["experiments"]}
    for experiment in campaign.experiments:
        if experiment.control or wanted.experiment not in ("", experiment.name):
            continue
        data = ExperimentData(summary, entries[experiment.name])
        gather = Gather(
            study, data, experiment, prices, wanted, budget, left_out[experiment.name],
            stopped[experiment.name], machine,
        )  # fmt: skip
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


def _excluded(campaign: Campaign) -> dict[str, Callable[[Mapping[str, Any]], bool]]:
    """By experiment whether the campaign's rules exclude a point."""
    excluded, content = {}, load_yaml(campaign.file)
    for experiment in campaign.experiments:
        spec = content["experiments"].get(experiment.name, {})
        where = f"{campaign.file}: experiments.{experiment.name}.exclude"
        rules = [
            rule for rule, _ in exclusions(experiment.benchmark, spec.get("exclude", []), where)
        ]
        excluded[experiment.name] = _any_of(rules)
    return excluded


def _any_of(rules: Sequence[Callable[[Mapping[str, Any]], Any]]) -> Callable[[Any], bool]:
    return lambda point: any(rule(point) for rule in rules)
