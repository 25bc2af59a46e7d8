"""All tables of a campaign's experiments, made from its summary and plan.json."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from scalesweep.analysis.metrics import units_of
from scalesweep.aspects.registry import parts
from scalesweep.core.plan_format import Plan
from scalesweep.tables.machine import Machine, machine_of
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.point_tables import point_tables
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.scaling import scaling_table, series_of

_Tables = dict[str, pd.DataFrame]


def make_tables(
    summary: pd.DataFrame,
    plan: Plan,
    runs: Path | None = None,
    unread: list[str] | None = None,
    machine: Machine | None = None,
) -> dict[str, _Tables]:
    """Tables of every experiment: {experiment: {table: frame}}; one without rows is not there.

    ``runs`` is the folder of the runs, some of whose files tables are made of; ``unread`` takes the
    ids of those whose files cannot be read and that tables are made without; ``machine`` is what is
    known of the machine, by default what the plan's experiments have measured. The control point
    has no tables of aspects. Each frame's ``attrs["units"]`` maps quantity columns to unit and
    label. Raises UserError if the plan and the summary do not belong together.
    """
    if machine is None:
        machine = machine_of(summary, plan)
    result = {}
    for experiment in plan["experiments"]:
        data = ExperimentData(summary, experiment, unread=unread)
        control = experiment.get("control")
        tables = _of_points(data)
        if not control:
            points = data.points()
            series = [[points[i] for i in group] for group in series_of(data, points)]
            tables |= _of_aspects(TableInputs(data, points, series, machine, runs))
        result[experiment["name"]] = tables
    return result


def _of_points(data: ExperimentData) -> _Tables:
    """The tables whose columns are the metrics of runs."""
    points = data.points()
    tables = point_tables(data, points)
    if data.scale in data.axes:
        tables["scaling"] = scaling_table(data, points, tables["points"])
    for frame in tables.values():
        frame.attrs["units"] = units_of(frame.columns, data.quantities)
    return tables


def _of_aspects(inputs: TableInputs) -> _Tables:
    """The tables of all aspects."""
    makers: Iterable[Maker] = (maker for each in parts("MAKERS") for maker in each)
    return {name: frame for maker in makers for name, frame in maker.frames(inputs).items()}
