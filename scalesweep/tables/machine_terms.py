"""Of which the machine explains: the least time of the terms of a step, in ms.

Transfer by the network's fit, for the bytes, ranks and messages of a step; computation by the
roofline of the model's layers; input by what the file system gives
(docs/methods/time_breakdown.md).
"""

import math
from dataclasses import dataclass

import pandas as pd

from scalesweep.analysis.exchange import Exchange, exchange_seconds
from scalesweep.analysis.roofline import Reach, reach_of
from scalesweep.analysis.step_account import STEPS, StepAccount
from scalesweep.tables.bookkeeping import EXCHANGE
from scalesweep.tables.file_rates import plain_reads
from scalesweep.tables.machine import (
    MEASURED,
    Machine,
    Model,
    agree,
    networks_like,
    numbers_in,
    sending_point,
    whole_point,
)
from scalesweep.tables.points import ExperimentData, Point
from scalesweep.tables.rank_layout import Layout, samples_of_a_step, splits_the_network

INPUT, COMPUTE, TRANSFER = "input", "compute", "transfer"
MODEL_PARAMETERS = "model_parameters"  # metric: values of a model's trainable variables
_MS = 1e3


@dataclass(frozen=True)
class Least:
    """What the machine needs for a term, in ms, with 95 % bounds (NaN without); by which probe."""

    value: float
    low: float
    high: float
    where: str

    @property
    def reach(self) -> Reach:
        """How far its interval reaches; NaN where there is none."""
        return reach_of(self.value, self.low, self.high)

    def times(self, factor: float) -> "Least":
        """So many times as much."""
        return Least(self.value * factor, self.low * factor, self.high * factor, self.where)


@dataclass(frozen=True)
class Sent:
    """What a step sends, and what the network would take for it, in ms."""

    exchange: Exchange
    as_fused: Least  # in the messages that are sent
    as_one: Least  # in a single message


def least_of(
    data: ExperimentData, point: Point, account: StepAccount, machine: Machine
) -> dict[str, Least]:
    """What the machine needs for the terms of a point's step, of those that it has probes for."""
    least = {INPUT: _input(data, point, account, machine)}
    if account.form == STEPS:
        sent = sent_in_a_step(data, point, machine)
        least[COMPUTE] = _compute(data, point, machine)
        least[TRANSFER] = sent.as_fused if sent else None
        if account.ranks == 1:
            least[TRANSFER] = Least(0.0, 0.0, 0.0, "")
    return {name: known for name, known in least.items() if known is not None}


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
    sents, ranks = [], Layout.of(every).ranks
    for network in networks_like(machine, every):
        least = [
            Least(s.value, s.low, s.high, network.where).times(_MS)
            for messages in (exchange.messages, [exchange.total])
            if (s := exchange_seconds(network.fits, ranks, messages))
        ]
        if len(least) == 2:
            sents.append(Sent(exchange, *least))
    return min(sents, key=lambda sent: sent.as_fused.value, default=None)


def _compute(data: ExperimentData, point: Point, machine: Machine) -> Least | None:
    """The sum of the layers' least times under the roofs that a rank shares with its node."""
    every, numbers = whole_point(data, point), numbers_in(data, point)
    model = model_of(data, point, numbers, machine)
    roof = machine.roof(MEASURED, numbers)
    if model is None or roof is None:
        return None
    devices = int(every.get("devices_per_rank") or 1)
    share = roof.shared(Layout.of(every).on_node * devices)
    least = sum(share.least_s(f, b) for f, b in zip(model.flop, model.moved, strict=True)) * _MS
    below, above = machine.reach_of_least(MEASURED, numbers)
    return Least(least, least * math.exp(-below), least * math.exp(above), model.where)


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


def _input(
    data: ExperimentData, point: Point, account: StepAccount, machine: Machine
) -> Least | None:
    """The bytes of a step of all ranks, over what as many nodes read."""
    known = data.summary["bytes"].iloc[point.rows].tolist() if "bytes" in data.summary else []
    sizes = {float(size) for size in known if not pd.isna(size)}
    nodes = Layout.of(whole_point(data, point)).nodes
    reads = plain_reads(machine.rates, nodes)
    if len(sizes) != 1 or reads is None:
        return None
    best, size = reads.best, sizes.pop() / account.per_epoch * _MS
    return Least(size / best.value, size / best.high, size / best.low, reads.where)
