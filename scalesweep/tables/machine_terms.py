"""What a step sends, and which layers it computes, by what the machine's probes measured."""

from dataclasses import dataclass

from scalesweep.analysis.exchange import Exchange, exchange_seconds
from scalesweep.tables.bookkeeping import EXCHANGE
from scalesweep.tables.machine import (
    Machine,
    Model,
    agree,
    networks_like,
    sending_point,
    whole_point,
)
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout, samples_of_a_step, splits_the_network

MODEL_PARAMETERS = "model_parameters"  # metric: values of a model's trainable variables
_MS = 1e3


@dataclass(frozen=True)
class Least:
    """What the network takes, in ms, with 95 % bounds (NaN without); by which probe."""

    value: float
    low: float
    high: float
    where: str


@dataclass(frozen=True)
class Sent:
    """What a step sends, and what the network would take for its messages, in ms."""

    exchange: Exchange
    as_fused: Least


def sent_in_a_step(data: ExperimentData, point: Point, machine: Machine) -> Sent | None:
    """The exchange of a point's step by the fit of the fastest network that is like the point's.

    None without either, where it is not known how tensors are put into messages, they are not
    reduced by all ranks, or the repeats differ.
    """
    if (noted := data.agreed(point, EXCHANGE)) is None:
        return None
    exchange, every = Exchange(**noted), sending_point(data, point)
    if exchange.bucket_bytes is None or not exchange.reduces or splits_the_network(every):
        return None
    ranks = Layout.of(every).ranks
    sents = [
        Sent(exchange, Least(s.value * _MS, s.low * _MS, s.high * _MS, network.where))
        for network in networks_like(machine, every)
        if (s := exchange_seconds(network.fits, ranks, exchange.messages))
    ]
    return min(sents, key=lambda sent: sent.as_fused.value, default=None)


def model_of(data: ExperimentData, point: Point, numbers: str, machine: Machine) -> Model | None:
    """The layers of what a point trains, at its local batch; ``numbers`` as ``numbers_in`` says.

    The same where both agree in all parameters that both name, in the type of their numbers, and
    in the number of weights.
    """
    weights = data.repeats(point, (MODEL_PARAMETERS, "run"))
    every = whole_point(data, point)
    if not weights.size or weights.min() != weights.max() or splits_the_network(every):
        return None
    like = (samples_of_a_step(every), numbers, round(float(weights[0])))
    models = (m for m in machine.models if (m.batch, m.numbers, m.weights) == like)
    return next((model for model in models if agree(model.named, every)), None)
