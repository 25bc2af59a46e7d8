"""The parts of a series' costs that are known apart: from the ledger, and from probes.

They make the sums by parts of a prediction (``analysis.prediction.parts``).
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from scalesweep.analysis.network_fit import message_seconds
from scalesweep.analysis.prediction.series import Collective, Parts
from scalesweep.analysis.step_account import EPOCHS, PROFILE, TRACE, StepAccount
from scalesweep.analysis.types import Floats
from scalesweep.core.plan_format import parameter_of
from scalesweep.tables.epoch_curves import ACCOUNT
from scalesweep.tables.exchange_text import EXCHANGE as EXCHANGED
from scalesweep.tables.exchange_text import exchange_of
from scalesweep.tables.machine import Machine, Network, networks_like, sending_point, whole_point
from scalesweep.tables.points import ExperimentData, Measure, Point
from scalesweep.tables.rank_layout import Layout, samples_of_a_step, splits_the_network

COMPUTATION, EXCHANGE = "computation", "exchange"
HOST = "host work between steps"
BOTH = "input and computation"  # where a record tells no more
# The parts of a prediction and the terms of the ledger that each adds up from, computation first.
OF_LEDGER: Mapping[str, Sequence[str]] = {
    COMPUTATION: ("compute", "busy"),
    "input": ("input",),
    HOST: ("checkpoint", "validation", "logging", "between"),
    "imbalance": ("persistent", "alternating", "stalls"),
    EXCHANGE: ("transfer", "sharded", "tensor", "pipeline", "communication"),
    "barrier": ("barrier",),
}
REST = "rest"
OUTSIDE = "outside the steps"  # starting, reading for the first time, validation
LATER: Measure = ("total_throughput", "later")
# What a parameter of a program does with gradients, by its name; the bytes of each number.
_BYTES = 4
_HALVED = ("compression", "gradient_compression")
_WAY = "variable_update"
# Which units count what a batch is made of.
_WORK = ("samples/s", "images/s")
_SAME = 1e-6


def parts_of(
    data: ExperimentData,
    points: Sequence[Point],
    costs: Floats,
    measure: Measure,
    machine: Machine,
) -> Parts | None:
    """What the costs of points add up from, None where neither ledger nor probe says it.

    ``costs[point]``. The ledger is of steady steps, so that first epochs have no parts.
    """
    if measure[1] == "init" or len(points) < 2:
        return None
    shares = _shares(data, points)
    measured = _collective(data, points, measure, machine)
    collective, probed_to = measured or (None, 0.0)
    if shares is None:
        if collective is None:
            return None
        return Parts((COMPUTATION,), costs[None, :], collective, None, probed_to)
    rows = {name: row * costs for name, row in shares.items()}
    exchange = EXCHANGE if EXCHANGE in rows else None
    each = np.stack(list(rows.values()))
    return Parts(tuple(rows), each, collective, exchange, probed_to)


def parts_within(
    data: ExperimentData,
    points: Sequence[Point],
    work: Floats,
    costs: Floats,
    machine: Machine,
) -> Parts | None:
    """What costs add up from that hold ``work[point]`` samples read at the rate of later epochs.

    ``costs[point]`` are rank-seconds in all, such as of whole runs: beyond the parts of their
    samples they have ``OUTSIDE``, what they take more. None where the samples have no parts.
    """
    rates = [data.repeats(point, LATER) for point in points]
    if LATER not in data.measures or not all(rate.size and rate.min() > 0 for rate in rates):
        return None
    counts = np.array([float(point.values[data.scale]) for point in points])
    each = counts / np.array([rate.mean() for rate in rates])
    known = parts_of(data, points, each, LATER, machine)
    if known is None or not (np.isfinite(work).all() and (work > 0).all()):
        return None
    own = known.cost * work
    outside = costs - own.sum(axis=0)
    if (outside < 0).any():  # what it is wrong by counts as computation, as in a ledger
        own[0] += outside
        outside = np.zeros(len(costs))
    if (own[0] <= 0).any():
        return None
    rows = [*zip(known.names, own, strict=True), *([(OUTSIDE, outside)] if outside.any() else [])]
    names, parts = zip(*rows, strict=True)
    even = np.ptp(work) <= _SAME * work[-1]
    collective = _times(known.collective, float(work[-1])) if known.collective and even else None
    return Parts(names, np.stack(parts), collective, known.exchange, known.probed_to)


def _times(collective: Collective, work: float) -> Collective:
    return lambda ranks: work * collective(ranks)


def _shares(data: ExperimentData, points: Sequence[Point]) -> dict[str, Floats] | None:
    """Each part's share of a step at every point; None where a point has no ledger like the others.

    They add up to 1. What the ledger does not attribute counts as computation where it is negative
    somewhere, and so does input where no computation is known.
    """
    texts = data.texts(ACCOUNT)
    accounts = [
        [StepAccount.from_json(json.loads(text)) for row in point.rows if (text := texts[row])]
        for point in points
    ]
    forms = {account.form for of_point in accounts for account in of_point}
    if len(forms) != 1 or forms & {PROFILE, TRACE} or not all(accounts):
        return None
    shares: dict[str, Floats] = {}
    whole = np.array([sum(account.elapsed for account in of_point) for of_point in accounts])
    for name, terms in OF_LEDGER.items():
        own = [
            sum(getattr(account, term) or 0.0 for account in of_point for term in terms)
            for of_point in accounts
        ]
        shares[name] = np.maximum(np.array(own, np.float64) / whole, 0.0)
    rest = 1 - np.sum(list(shares.values()), axis=0)
    if (rest < 0).any():
        shares[COMPUTATION] = shares[COMPUTATION] + rest
    else:
        shares[REST] = rest
    if not shares[COMPUTATION].any():
        shares[COMPUTATION] = shares.pop("input")
    if (shares[COMPUTATION] <= 0).any():
        return None
    whole_epochs = EPOCHS in forms and accounts[0][0].busy is not None
    names = {COMPUTATION: BOTH} if whole_epochs else {}
    return {names.get(name, name): row for name, row in shares.items() if row.any()}


def _collective(
    data: ExperimentData, points: Sequence[Point], measure: Measure, machine: Machine
) -> tuple[Collective, float] | None:
    """What the exchange of gradients costs by probes: rank-seconds for a sample, and the ranks up
    to which the probes crossed the borders between them.

    None where the size of the gradients, the batch of a rank or the network is not known, or they
    are not exchanged by an allreduce of all ranks.
    """
    if (
        not machine.networks
        or data.scale != "ranks"
        or data.quantities[measure[0]].unit not in _WORK
    ):
        return None
    sizes = {float(size) for p in points for size in data.repeats(p, ("model_parameters", "run"))}
    every = [whole_point(data, point) for point in points]
    batches = np.array([samples_of_a_step(values_) or np.nan for values_ in every])
    ranks = np.array([float(point.values["ranks"]) for point in points])
    if len(sizes) != 1 or not all(map(partial(_reduces, data), points, every)):
        return None
    size = sizes.pop() * _gradient_bytes(every[-1])
    known = _allreduce(machine, sending_point(data, points[-1]), size)
    if known is None:
        return None
    seconds, probed_to = known
    if np.ptp(batches) <= _SAME * batches[-1]:
        return lambda p: seconds(p) / batches[-1], probed_to
    if np.ptp(batches * ranks) <= _SAME * batches[-1] * ranks[-1]:
        return lambda p: seconds(p) * p / (batches[-1] * ranks[-1]), probed_to
    return None


def _reduces(data: ExperimentData, point: Point, values: Mapping[str, Any]) -> bool:
    """Whether the gradients of a point are reduced by all of its ranks.

    As its records say; where they do not, in the way that its benchmark takes by default.
    """
    if splits_the_network(values):
        return False
    texts = data.texts(EXCHANGED)
    known = [exchange_of(text) for row in point.rows.tolist() if (text := texts[row])]
    if known:
        return all(exchange.reduces for exchange in known)
    usual = parameter_of(data.experiment, _WAY)["default"]
    return bool(values.get(_WAY, usual) == usual)


def _allreduce(
    machine: Machine, point: Mapping[str, Any], size: float
) -> tuple[Collective, float] | None:
    """Seconds of an allreduce of ``size`` bytes on any number of ranks, and the ranks of the
    largest that was probed; None where it is not known.

    Of several networks that of which the point could take most. Within a node and between nodes
    are two networks: of a point on one node the second is that of several nodes as full, where it
    was probed.
    """
    layout = Layout.of(point)
    here = _network(machine, point, layout.ranks, size)
    if here is None:
        return None
    beyond = None
    if layout.nodes == 1:
        several = {**point, "ranks": 2 * layout.per_node}
        beyond = _network(machine, several, 2 * layout.per_node, size)

    def seconds(counts: Floats) -> Floats:
        each = [
            message_seconds(
                (beyond if beyond and count > layout.per_node else here).fits, int(count), size
            )
            for count in counts
        ]
        return np.array(
            [0.0 if estimate is None else estimate.value for estimate in each]
        )  # of one rank

    return seconds, float((beyond or here).layout.ranks)


def _network(machine: Machine, point: Mapping[str, Any], ranks: int, size: float) -> Network | None:
    """The network of which a point could take most; None without any."""
    networks = [
        (least.value, network)
        for network in networks_like(machine, point)
        if (least := message_seconds(network.fits, max(ranks, 2), size)) is not None
    ]
    return min(networks, key=itemgetter(0))[1] if networks else None


def _gradient_bytes(parameters: Mapping[str, Any]) -> int:
    """Bytes of a gradient of one parameter of the network."""
    return _BYTES // 2 if "fp16" in [parameters.get(name) for name in _HALVED] else _BYTES
