"""How fast training consumes samples that cost nothing to read: of points with dummy input."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import read_table
from scalesweep.core.errors import UserError
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PLAN, Plan, read_plan
from scalesweep.tables.points import ExperimentData, Measure
from scalesweep.tables.rank_layout import Layout

_log = logging.getLogger(__name__)

SUMMARY = "summary.parquet"
# Inputs that hold nothing to read or to learn: what a model makes of them says nothing.
DUMMY = ("dummy",)
# Of the epochs that have warmed up, or of the only one.
_RATES: tuple[Measure, ...] = (("total_throughput", "later"), ("total_throughput", "init"))


@dataclass(frozen=True)
class Consumer:
    """A training point with dummy input: ``rates`` are samples/s of all ranks, of each repeat.

    ``point`` has all its parameters; ``where`` is its experiment, with the values that tell its
    series from others of that.
    """

    point: Mapping[str, Any]
    source: str | None
    rates: tuple[float, ...]
    where: str

    @property
    def layout(self) -> Layout:
        """How its ranks lie on nodes."""
        return Layout.of(self.point)


def known_consumers(own: Sequence[Consumer], plan: Plan) -> Sequence[Consumer]:
    """A campaign's ``own`` consumers, and those among the finished runs of the results folder that
    it names (``consumer``).

    That one is left out, with a line, where it is not there, was changed, or is of another site.
    """
    if "consumer" not in plan:
        return own
    folder = Path(plan["consumer"])
    try:
        more = consumers_of(*finished_campaign(folder, plan["site"]))
        if not more:
            raise UserError(f"{folder}: no finished run trains on dummy input")
    except (UserError, OSError) as error:
        _log.warning("consumer: %s: reading is not held against it", error)
        return own
    return [*own, *(replace(each, where=f"{each.where} of {folder}") for each in more)]


def finished_campaign(folder: Path, site: str) -> tuple[pd.DataFrame, Plan]:
    """Summary and plan of another results folder.

    Raises UserError or OSError where they are not there, were changed, or are of another site.
    """
    plan = read_plan(folder / PLAN)
    if plan["site"] != site:
        raise UserError(f"{folder}: of site {plan['site']}, not {site}")
    return read_table(folder / SUMMARY), plan


def consumers_of(summary: pd.DataFrame, plan: Plan) -> list[Consumer]:
    """The points with dummy input of a campaign's experiments."""
    return [
        consumer
        for experiment in plan["experiments"]
        if "input" in {**experiment["fixed"], **dict.fromkeys(experiment["axes"])}
        and not experiment.get("control")
        for consumer in _consumers(ExperimentData(summary, experiment))
    ]


def _consumers(data: ExperimentData) -> list[Consumer]:
    scale = {data.scale, *data.experiment["scale_parameters"], "input"}
    consumers = []
    for point in data.points():
        every = parameters_at(data.experiment, point.values)
        rates = (data.repeats(point, measure) for measure in _RATES)
        values = next((rate for rate in rates if rate.size), None)
        if every.get("input") not in DUMMY or values is None or values.mean() <= 0:
            continue
        named = {name: point.values[name] for name in data.axes if name not in scale}
        words = [f"{name} {_word(value)}" for name, value in named.items()]
        where = ", ".join([data.experiment["name"], *words])
        consumers.append(Consumer(every, point.source, tuple(values.tolist()), where))
    return consumers


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
