"""What a campaign's own probes say of its machine: what any of its runs is held against.

Ceilings of a node (``tables.ceilings``), the network's fits, what the file system and input
pipelines give (``tables.file_rates``), and what the layers of models compute and move. Of results
that were imported or simulated only where none were measured.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from scalesweep.analysis.network_fit import RangeFit
from scalesweep.analysis.roofline import rated_flop
from scalesweep.core.errors import UserError
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import Plan, parameter_of
from scalesweep.tables.ceilings import Ceiling, machine_ceilings, numbers_in
from scalesweep.tables.exchange_text import EXCHANGED_BY
from scalesweep.tables.file_rates import (
    TRAINING,
    Rate,
    file_rates,
    finished_campaign,
    other_training,
)
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout, ranks_of
from scalesweep.tables.sweeps import fitted_networks

_log = logging.getLogger(__name__)

T = TypeVar("T")
NETWORK = "network"
UPDATE = "update"  # the layer that computes twice as many FLOP as there are weights


@dataclass(frozen=True)
class Network:
    """The fit of a series of allreduces; ``layout`` is that of its largest point."""

    layout: Layout
    transport: Mapping[str, Any]  # what decides how messages go, by parameter
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
        known = {(ceiling.kind, ceiling.stated, ceiling.dtype) for ceiling in self.ceilings}
        new = [
            ceiling
            for ceiling in other.ceilings
            if (ceiling.kind, ceiling.stated, ceiling.dtype) not in known
        ]

        def named(items: Sequence[Any]) -> list[Any]:
            return [replace(item, where=f"{item.where} of {where}") for item in items]

        own = {rate.kind for rate in self.rates} | {TRAINING}
        rates = [rate for rate in other.rates if rate.kind not in own]
        return replace(
            self,
            ceilings=[*self.ceilings, *named(new)],
            networks=self.networks or named(other.networks),
            rates=[*self.rates, *named(rates)],
            models=[*self.models, *named(other.models)],
        )


def known_machine(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What the finished runs of a campaign say of the machine, and where they say nothing, those of
    the campaign that the site names (``ceilings`` of its file).

    That one is left out, with a line, where it is not there, was changed, or is of another site.
    """
    own = machine_of(summary, plan)
    own = replace(own, rates=[*own.rates, *other_training(plan)])
    if "ceilings" not in plan:
        return own
    folder = Path(plan["ceilings"])
    try:
        known = machine_of(*finished_campaign(folder, plan["site"]))
    except (UserError, OSError) as error:
        _log.warning("ceilings of site %s: %s: nothing is held against them", plan["site"], error)
        return own
    return own.with_more(known, str(folder))


UNKNOWN = Machine()


def machine_of(summary: pd.DataFrame, plan: Plan) -> Machine:
    """What the finished runs of a campaign say of the machine."""
    networks: list[tuple[bool, Network]] = []
    models: list[Model] = []
    layers = LAYERS in summary and bool(summary[LAYERS].notna().any())
    for experiment in plan["experiments"]:
        kind = experiment.get("ceiling")
        if kind == NETWORK:
            networks += _networks(ExperimentData(summary, experiment))
        elif layers and not experiment.get("control"):
            models += _models(ExperimentData(summary, experiment))
    return Machine(
        machine_ceilings(summary, plan), _best_known(networks), file_rates(summary, plan), models
    )  # fmt: skip


def _best_known(items: Sequence[tuple[bool, T]]) -> list[T]:
    """What was measured; what was not, where nothing was."""
    measured = [item for here, item in items if here]
    return measured or [item for _, item in items]


def whole_point(data: ExperimentData, point: Point) -> dict[str, Any]:
    """All parameters of a point."""
    return parameters_at(data.experiment, point.values)


def sending_point(data: ExperimentData, point: Point) -> dict[str, Any]:
    """All parameters of a point, and what carries its messages where all its runs say the same."""
    texts = data.texts(EXCHANGED_BY)
    said = {texts[row] for row in point.rows.tolist()}
    known = said.pop() if len(said) == 1 else None
    return {**whole_point(data, point), **({EXCHANGED_BY: known} if known else {})}


def networks_like(machine: Machine, point: Mapping[str, Any]) -> list[Network]:
    """The networks whose messages took the ways of a point's (``sending_point``), and were carried
    by the same library and backend: another one's cost is not the network's."""
    layout, transport = Layout.of(point), transport_of(point)
    return [
        network
        for network in machine.networks
        if network.layout.like(layout) and agree(network.transport, transport)
    ]


def other_carriers(machine: Machine, point: Mapping[str, Any]) -> list[str]:
    """What carried the messages of networks that are like a point's but for that."""
    own = point.get(EXCHANGED_BY)
    bare = {name: value for name, value in point.items() if name != EXCHANGED_BY}
    others = [network.transport.get(EXCHANGED_BY) for network in networks_like(machine, bare)]
    return sorted({other for other in others if own and other and other != own})


def agree(facts: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether two points agree in what both name."""
    return all(others[name] == value for name, value in facts.items() if name in others)


def transport_of(point: Mapping[str, Any]) -> dict[str, Any]:
    """What decides which ways messages go: parameters, and what carries them."""
    return {
        name: value
        for name, value in point.items()
        if name in ("hierarchical_allreduce", EXCHANGED_BY) or name.startswith("env.")
    }


def _where(data: ExperimentData, source: str | None) -> str:
    return data.experiment["name"] + ("" if source == "measured" else f" ({source})")


def _networks(data: ExperimentData) -> list[tuple[bool, Network]]:
    """The fits of series whose messages are one tensor: fusing several is not the network's."""
    networks = []
    for series in fitted_networks(data, data.points()):
        largest = max((sending_point(data, point) for point in series.points), key=ranks_of)
        if series.fits and largest.get("tensors", 1) == 1:
            source = series.points[0].source
            network = Network(
                Layout.of(largest), transport_of(largest), series.fits, _where(data, source)
            )
            networks.append((source == "measured", network))
    return networks


def _models(data: ExperimentData) -> list[Model]:
    """The models whose layers were timed: operations and bytes of each layer in a step, by batch
    size."""
    texts = data.texts(LAYERS)
    parameters = data.experiment["parameters"]
    workload = [name for name in parameters if parameter_of(data.experiment, name)["workload"]]
    models = []
    for point in data.points():
        text = next((texts[row] for row in point.rows.tolist() if texts[row]), None)
        every = whole_point(data, point)
        if text is None or "batch_size" not in every:
            continue
        layers = LayerTimes.from_text(text)
        pairs = zip(layers.count, layers.flop_forward, layers.flop_backward, strict=True)
        bytes_ = zip(layers.count, layers.bytes_forward, layers.bytes_backward, strict=True)
        flop = [count * (there + back) for count, there, back in pairs]
        updates = [n for n, kind in zip(flop, layers.kind, strict=True) if kind == UPDATE]
        models.append(
            Model(
                {name: every[name] for name in workload if name in every},
                int(every["batch_size"]),
                numbers_in(data, point),
                round(sum(updates) / 2),
                [rated_flop(kind, n) for n, kind in zip(flop, layers.kind, strict=True)],
                [count * (there + back) for count, there, back in bytes_],
                _where(data, point.source),
            )
        )
    return models
