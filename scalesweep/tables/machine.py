"""What a campaign's own probes say of its machine: what any of its runs is held against.

Ceilings of a node, the network's fits, what the file system and input pipelines give
(``tables.file_rates``), and what the layers of models compute and move. Of results that were
imported or simulated only where none were measured.

Measured ceilings are the best points of experiments whose benchmark.yaml says ``ceiling: compute``
(its main metric in FLOP/s), ``memory`` (bytes/s) or ``copies``.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scalesweep.analysis.best_rate import best_rate, growth
from scalesweep.analysis.network_fit import RangeFit
from scalesweep.analysis.roofline import COMPUTE, MEMORY, rated_flop
from scalesweep.analysis.stats import Estimate
from scalesweep.analysis.table_io import read_table
from scalesweep.core.errors import UserError
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import PLAN, Plan, parameter_of, read_plan
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.bookkeeping import EXCHANGED_BY
from scalesweep.tables.file_rates import Rate, file_rates, where_of
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.provenance import FACTS, IN_FORCE, MIXED, TF32_FACT
from scalesweep.tables.rank_layout import Layout, ranks_of
from scalesweep.tables.sweeps import fitted_networks, sweeps_of

SUMMARY = "summary.parquet"
_log = logging.getLogger(__name__)

NETWORK = "network"
COPIES = "copies"  # the best of copies from host to GPU, of a rank
_UNITS = {COMPUTE: "FLOP/s", MEMORY: "bytes/s", COPIES: "bytes/s"}
MEASURED, DATASHEET = "measured", "datasheet"
UPDATE = "update"  # the layer that computes twice as many FLOP as there are weights
# Parameters of benchmarks that may name the type of the numbers, and what their values are.
_TYPE_PARAMETERS = ("dtype", "precision")
_TYPES = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
FLOAT32, TF32, UNSURE = "float32", "tf32", "float32 or tf32"


@dataclass(frozen=True, kw_only=True)
class Ceiling(DeclaredRow, table="ceilings"):
    """A ceiling of a node, or (copies) of a rank: what a data sheet states, or the best of some
    runs (``analysis.best_rate``)."""

    kind: str = column("`compute` or `memory` of a node, or `copies` from host to GPU, of a rank")
    stated: str = column("`measured`, or `datasheet`")
    dtype: str | None = column("type of the numbers, of computation", default=None)
    value: Estimate = column("the ceiling; of a measured one the best run", ends=("low", "high"))
    unit: str = column("unit of the ceiling and its interval")
    repeats: int = column("runs at the best point", "1", default=0)
    where: str = column("what measured it")
    disturbed: int = column("runs that were disturbed", "1", default=0)
    growing: bool = column("whether the rate still grew at the last size tried", default=False)
    intensity: float | None = column(
        "operations over the least bytes of the size that reached it, of computation", "FLOP/byte",
        default=None,
    )  # fmt: skip
    ridge: float | None = column(
        "least arithmetic intensity that can reach it: of computation, over the memory's ceiling "
        "that is stated alike",
        "FLOP/byte", default=None,
    )  # fmt: skip
    devices: int = 0  # of a node, where the site says what they are; 0: not known
    ranks: int = 0  # on a node, that measured it; 0: nobody did


@dataclass(frozen=True)
class Network:
    """The fit of a series of allreduces; ``layout`` is that of its largest point."""

    layout: Layout
    ways: Mapping[str, Any]  # what decides which ways messages go, by parameter
    carrier: str | None  # library and backend; None: not known
    fits: Sequence[RangeFit]
    where: str


@dataclass(frozen=True)
class Model:
    """What the layers of a model compute and move in a step, lists of one length."""

    named: Mapping[str, Any]  # the model and its input, by parameter
    batch: int
    numbers: str  # type of the numbers
    weights: int
    flop: Sequence[float]  # that a ceiling of products is held against
    moved: Sequence[float]  # bytes
    where: str


class Grown(NamedTuple):
    """What a series of the campaign costs by count (``analysis.prediction``): ``of`` names its
    program, kind of scaling, source and measure; ``node``: ranks of a node, 0 if unknown."""

    of: tuple[str, ...]
    node: int
    ranks: tuple[float, ...]
    costs: tuple[float, ...]


@dataclass(frozen=True)
class Machine:
    """All that is known of a machine."""

    ceilings: Sequence[Ceiling] = ()
    networks: Sequence[Network] = ()
    rates: Sequence[Rate] = ()
    models: Sequence[Model] = ()
    grown: Sequence[Grown] = ()  # series of the campaign (``tables.predictable``)

    def with_more(self, other: "Machine", where: str) -> "Machine":
        """This, and of another campaign, in ``where``, what this does not know.

        Models count from both: which is meant follows from the point.
        """

        def named(items: Sequence[Any]) -> list[Any]:
            return [replace(item, where=f"{item.where} of {where}") for item in items]

        known = {(ceiling.kind, ceiling.stated, ceiling.dtype) for ceiling in self.ceilings}
        new = [c for c in other.ceilings if (c.kind, c.stated, c.dtype) not in known]
        own = {rate.kind for rate in self.rates}
        rates = [rate for rate in other.rates if rate.kind not in own]
        return replace(
            self,
            ceilings=[*self.ceilings, *named(new)],
            networks=self.networks or named(other.networks),
            rates=[*self.rates, *named(rates)],
            models=[*self.models, *named(other.models)],
        )

    def ceiling(self, kind: str, stated: str, dtype: str | None = None) -> Ceiling | None:
        """The ceiling of a kind, measured or from a data sheet; of computation for a type."""
        wanted = (kind, stated, dtype if kind == COMPUTE else None)
        same = (c for c in self.ceilings if (c.kind, c.stated, c.dtype) == wanted)
        return next(same, None)


UNKNOWN = Machine()


def known_machine(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What the finished runs of a campaign say of the machine, and where they say nothing, those of
    the results folders that the campaign (``consumer``) and its site (``ceilings``) name.

    One is left out, with a line, where it is not there, was changed, or is of another site.
    """
    known = machine_of(summary, plan)
    for key, folder in (("consumer", plan.get("consumer")), ("ceilings", plan.get("ceilings"))):
        if folder is None:
            continue
        try:
            other = read_plan(Path(folder) / PLAN)
            if other["site"] != plan["site"]:
                raise UserError(f"{folder}: of site {other['site']}, not {plan['site']}")
            more = machine_of(read_table(Path(folder) / SUMMARY), other)
        except (UserError, OSError) as error:
            _log.warning("%s: %s: nothing is held against it", key, error)
            continue
        known = known.with_more(more, folder)
    return known


def machine_of(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What the finished runs of a campaign say of the machine."""
    ceilings: list[tuple[bool, Ceiling]] = []
    networks: list[tuple[bool, Network]] = []
    models: list[Model] = []
    layers = LAYERS in summary and bool(summary[LAYERS].notna().any())
    for experiment in plan["experiments"]:
        kind = str(experiment.get("ceiling"))
        if kind in (COMPUTE, MEMORY, COPIES) and experiment["main_metric"]:
            ceilings += _ceilings(ExperimentData(summary, experiment), kind)
        elif kind == NETWORK:
            networks += _networks(ExperimentData(summary, experiment))
        elif layers and not experiment.get("control"):
            models += _models(ExperimentData(summary, experiment))
    # The point with the best run counts; an imported one only if none was measured.
    ceilings.sort(key=lambda each: (each[1].kind, each[0], each[1].value.value))
    best = {(ceiling.kind, ceiling.dtype): ceiling for _, ceiling in ceilings}
    known = [network for here, network in networks if here] or [of for _, of in networks]
    every = [*best.values(), *_stated(plan.get("peaks", {}))]
    return Machine(every, known, file_rates(summary, plan), models)


def _ceilings(data: ExperimentData, kind: str) -> Iterator[tuple[bool, Ceiling]]:
    """Whether a point was measured, and the ceiling of a node that it shows."""
    entry = data.experiment
    for point in data.points():
        values = data.repeats(point, (str(entry["main_metric"]), "run"))
        every = whole_point(data, point)
        if not values.size or (kind == COPIES and every.get("direction") != "host_to_device"):
            continue
        layout, best = Layout.of(every), best_rate(values)
        sweep = next(iter(sweeps_of(data, [point])), None)
        nodes = layout.ranks if kind == COPIES else layout.nodes
        intensity = None
        if sweep is not None and kind == COMPUTE:
            sizes, rates = sweep.best_rates()
            intensity = sweep.intensity(sizes[rates.index(max(rates))])
        yield point.source == "measured", Ceiling(
            kind=kind, stated=MEASURED, dtype=numbers_in(data, point) if kind == COMPUTE else None,
            value=best.rate.times(1 / nodes), unit=_UNITS[kind], repeats=int(values.size),
            where=where_of(data, point), disturbed=best.disturbed,
            growing=sweep is not None and bool(growth(*sweep.best_rates())),
            intensity=intensity, ranks=layout.on_node,
        )  # fmt: skip


def _stated(peaks: Mapping[str, Any]) -> Iterator[Ceiling]:
    """The peaks that a site file states."""
    rates = [(COMPUTE, dtype, value) for dtype, value in peaks.get("flops", {}).items()]
    rates += [(MEMORY, None, peaks["bytes_per_s"])] if "bytes_per_s" in peaks else []
    for kind, dtype, value in rates:
        yield Ceiling(
            kind=kind, stated=DATASHEET, dtype=dtype, value=Estimate(float(value)),
            unit=_UNITS[kind], where="data sheet", devices=int(peaks.get("devices", 0)),
        )  # fmt: skip


def numbers_in(data: ExperimentData, point: Point) -> str:
    """The type of the numbers that the runs of a point computed with: float32 where no parameter
    names one, and ``tf32`` where that was in force (``UNSURE``: where runs on GPUs do not say, or
    differ)."""
    every = whole_point(data, point)
    named = (every.get(name) for name in _TYPE_PARAMETERS)
    numbers = next((_TYPES.get(v, v) for v in named if isinstance(v, str)), FLOAT32)
    if numbers != FLOAT32 or point.source != "measured":
        return numbers
    facts = data.notes(FACTS)
    kinds = {_float32_as(facts.get(row)) for row in point.rows.tolist()}
    return kinds.pop() if len(kinds) == 1 else UNSURE


def _float32_as(facts: Mapping[str, Any] | None) -> str:
    """What products of float32 were computed in, by the facts of a run."""
    if facts is None:
        return FLOAT32
    recorded = dict(facts["environment"]).get(TF32_FACT)
    if recorded is not None:
        return {IN_FORCE: TF32, MIXED: UNSURE}.get(recorded, FLOAT32)
    has_gpus = any("GPUs" in dict(kind) for kind, _ in facts["hardware"])
    return UNSURE if has_gpus else FLOAT32


def whole_point(data: ExperimentData, point: Point) -> dict[str, Any]:
    """All parameters of a point."""
    return parameters_at(data.experiment, point.values)


def agree(facts: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two points agree in what both name."""
    return all(others[name] == value for name, value in facts.items() if name in others)


def ways_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a point that decide which ways its messages go."""
    return {
        name: value
        for name, value in point.items()
        if name == "hierarchical_allreduce" or name.startswith("env.")
    }


def _networks(data: ExperimentData) -> Iterator[tuple[bool, Network]]:
    """Whether they were measured, and the fits of series whose messages are one tensor: fusing
    several is not the network's."""
    for series in fitted_networks(data, data.points()):
        largest = max(series.points, key=lambda point: ranks_of(whole_point(data, point)))
        every, source = whole_point(data, largest), largest.source
        if series.fits and every.get("tensors", 1) == 1:
            yield source == "measured", Network(
                Layout.of(every), ways_of(every), data.agreed(largest, EXCHANGED_BY), series.fits,
                where_of(data, largest),
            )  # fmt: skip


def _models(data: ExperimentData) -> Iterator[Model]:
    """The models whose layers were timed: operations and bytes of each layer in a step, by batch
    size."""
    notes, entry = data.notes(LAYERS), data.experiment
    workload = [name for name in entry["parameters"] if parameter_of(entry, name)["workload"]]
    for point in data.points():
        timed = next((notes[row] for row in point.rows.tolist() if row in notes), None)
        every = whole_point(data, point)
        if timed is None or "batch_size" not in every:
            continue
        layers = LayerTimes(**timed)
        pairs = zip(layers.count, layers.flop_forward, layers.flop_backward, strict=True)
        bytes_ = zip(layers.count, layers.bytes_forward, layers.bytes_backward, strict=True)
        flop = [count * (there + back) for count, there, back in pairs]
        updates = [n for n, kind in zip(flop, layers.kind, strict=True) if kind == UPDATE]
        yield Model(
            {name: every[name] for name in workload if name in every},
            int(every["batch_size"]),
            numbers_in(data, point),
            round(sum(updates) / 2),
            [rated_flop(kind, n) for n, kind in zip(flop, layers.kind, strict=True)],
            [count * (there + back) for count, there, back in bytes_],
            where_of(data, point),
        )
