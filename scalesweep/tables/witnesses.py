"""Finished series of a program on a site: what crossing a border cost it in other experiments.

Those of the other experiments of a campaign come from its summary, those of other campaigns from a
file in the results folder (``KEPT``) to which each campaign adds its own when its tables are made.
They tell a prediction of the same program what a border of the machine costs (``tables.borders``).
"""

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.prediction.topology import Growth
from scalesweep.core.files import canonical_json, read_regular, write_atomic
from scalesweep.core.formatting import finite
from scalesweep.core.plan_format import Plan, PlanExperiment
from scalesweep.core.scaling_kinds import OF_SAMPLES
from scalesweep.tables.machine import (
    Finished,
    Machine,
    agree,
    known_machine,
    transport_of,
    whole_point,
)
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.rank_layout import Layout
from scalesweep.tables.run_scatter import Squares, scatter_key, squares_of
from scalesweep.tables.scaling import series_of

KEPT = ".series.jsonl"
# A file of more campaigns than anyone has is none of ours.
_MOST_BYTES = 16 << 20
_log = logging.getLogger(__name__)


def predicting_machine(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What is known of the machine (``known_machine``), with the scatter of runs in the campaign,
    and the finished series of it and of others, of the same results folder or that which the site
    names (``ceilings``)."""
    machine = known_machine(summary, plan)
    folders = dict.fromkeys(folder for folder in (plan["results"], plan.get("ceilings")) if folder)
    others = [
        series
        for folder in folders
        for series in read_series(Path(folder) / KEPT)
        if series.site == plan["site"] and series.campaign != plan["campaign"]
    ]
    own = [replace(series, campaign="") for series in campaign_series(summary, plan)]
    return replace(
        machine, series=tuple(_distinct([*own, *others])), scatter=_scatter(summary, plan)
    )


def _scatter(summary: pd.DataFrame, plan: Plan) -> dict[str, Squares]:
    """What the repeated points of all experiments tell of the scatter of runs; one that several
    have counts as often."""
    squares: dict[str, Squares] = {}
    for entry in plan["experiments"]:
        data = ExperimentData(summary, entry)
        points = data.points()
        for measure in data.measures:
            for source in {point.source for point in points}:
                own = [point for point in points if point.source == source]
                key = scatter_key(data, source, measure)
                pair = zip(squares.get(key, (0.0, 0)), squares_of(data, own, measure), strict=True)
                total, degrees = (sum(each) for each in pair)
                squares[key] = (total, int(degrees))
    return {key: (total, degrees) for key, (total, degrees) in squares.items() if degrees}


def campaign_series(summary: pd.DataFrame, plan: Plan) -> list[Finished]:
    """The finished series of all experiments of a campaign."""
    return [
        series
        for entry in plan["experiments"]
        if _scales(entry)
        for series in finished_series(ExperimentData(summary, entry), plan)
    ]


def finished_series(data: ExperimentData, plan: Plan) -> Iterator[Finished]:
    """The series of an experiment over ranks, of one layout each, in every rate or time of work."""
    experiment = data.experiment
    points = data.points()
    measures = [measure for measure in data.measures if data.quantities[measure[0]].scales]
    for group in series_of(data, points):
        for measure in measures:
            known = [
                (points[i], float(values.mean()))
                for i in group
                if (values := data.repeats(points[i], measure)).size and values.mean() > 0
            ]
            every = [whole_point(data, point) for point, _ in known]
            layouts = {Layout.of(point).per_node for point in every}
            counts = tuple(float(Layout.of(point).ranks) for point in every)
            if len(layouts) != 1 or len(set(counts)) < max(len(counts), 2):
                continue
            ranks, values = np.array(counts), np.array([value for _, value in known])
            rates = ranks / data.costs(measure, ranks, values)
            yield Finished(
                plan["site"], plan["campaign"], experiment["name"], experiment["benchmark"],
                experiment["scaling"], str(known[0][0].source), measure, layouts.pop(), counts,
                tuple(rates.tolist()), transport_of(every[0]),
            )  # fmt: skip


def witnesses(
    machine: Machine | None, data: ExperimentData, own: Sequence[Point], measure: Measure
) -> Iterator[Growth]:
    """The series of other experiments and campaigns that are like that of ``own`` points: of the
    same program, kind of scaling, source and measure, on nodes as full, with messages that take
    the same ways."""
    experiment, point = data.experiment, whole_point(data, own[-1])
    alike = (experiment["benchmark"], experiment["scaling"], own[-1].source, measure)
    for series in machine.series if machine else ():
        if (
            (series.campaign, series.experiment) != ("", experiment["name"])
            and (series.benchmark, series.scaling, series.source, tuple(series.measure)) == alike
            and series.per_node == Layout.of(point).per_node
            and agree(series.transport, transport_of(point))
        ):
            yield series.growth()


def keep_series(plan: Plan, series: Iterable[Finished], path: Path) -> None:
    """Put the finished series of a campaign in the place of those that the file has of it."""
    others = [
        series
        for series in read_series(path)
        if (series.site, series.campaign) != (plan["site"], plan["campaign"])
    ]
    write_atomic(path, _text((*others, *series)), durable=False)


def _text(series: Iterable[Finished]) -> str:
    return "".join(f"{canonical_json(asdict(series))}\n" for series in series)


def read_series(path: Path) -> list[Finished]:
    """The series of a file; lines that are not whole are left out, with one line of warning."""
    try:
        lines = read_regular(path, _MOST_BYTES).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("%s: left out: %s", path, error.strerror)
        return []
    finisheds = [_of_line(line) for line in lines]
    if bad := sum(series is None for series in finisheds):
        _log.warning("%s: %d lines are no finished series and are left out", path, bad)
    return [series for series in finisheds if series is not None]


def _of_line(line: str) -> Finished | None:
    try:
        fields = json.loads(line)
        metric, phase = fields.pop("measure")
        ranks, rates = (tuple(map(float, fields.pop(name))) for name in ("ranks", "rates"))
        finished = Finished(**fields, measure=(metric, phase), ranks=ranks, rates=rates)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    numbers = all(map(finite, (*ranks, *rates))) and min(ranks + rates, default=0) > 0
    sorted_ = len(ranks) == len(rates) > 1 and list(ranks) == sorted(set(ranks))
    texts = (
        finished.site,
        finished.campaign,
        finished.experiment,
        finished.benchmark,
        finished.scaling,
        finished.source,
    )
    words = all(isinstance(text, str) for text in (*texts, *finished.measure))
    whole = isinstance(finished.per_node, int) and isinstance(finished.transport, dict)
    return finished if numbers and sorted_ and words and whole else None


def _scales(entry: PlanExperiment) -> bool:
    """Whether an experiment measures series over ranks."""
    over_ranks = entry["scale"] == "ranks" and "ranks" in entry["axes"]
    return over_ranks and entry["scaling"] in OF_SAMPLES and not entry.get("control")


def _distinct(series: Sequence[Finished]) -> Iterator[Finished]:
    """Without those that share a measured point with a longer one: the same runs tell once."""
    taken: set[tuple[Any, ...]] = set()
    for finished in sorted(series, key=lambda each: -len(each.ranks)):
        head = (finished.benchmark, finished.scaling, finished.source, *finished.measure)
        points = {(*head, *pair) for pair in zip(finished.ranks, finished.rates, strict=True)}
        if not points & taken:
            taken |= points
            yield finished
