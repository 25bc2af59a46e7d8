"""What a campaign's or site's all-reduce probes say of the exchange of layouts."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.network_fit import RangeFit, predicted_seconds
from scalesweep.analysis.prediction.layouts.links import PASSES, Link, expected_costs
from scalesweep.tables.machine import Machine, Network, networks_like

# Numbers that take four bytes; others take two.
_WIDE = ("float32", "tf32")
# Units of a rate in which the time of a step follows from samples, and samples of one.
_UNITS = ("samples/s", "tokens/s")


def probed_costs(
    machine: Machine, point: Mapping[str, Any], per_node: int, shape: ModelShape, unit: str
) -> Mapping[str, float]:
    """What a unit of exchange terms takes by probes of the point's ways (``expected_costs``), in
    samples of a step over a rate in ``unit``; nothing without probes.

    ``point``: one of the study, with what carries its messages; ``per_node``: ranks of a node.
    """
    if unit not in _UNITS or not machine.networks:
        return {}
    inside, between = (
        _link([*networks_like(machine, {**point, "ranks": n, "ranks_per_node": per_node})])
        for n in (per_node, 2 * per_node)
    )
    number_bytes = 4.0 if shape.dtype in (None, *_WIDE) else 2.0
    seconds = expected_costs(inside, between, number_bytes, bool(shape.parameters))
    samples = shape.sequence if unit == "tokens/s" else 1
    return {name: value / samples for name, value in seconds.items()}


def _link(networks: list[Network]) -> Link | None:
    """The link of the fastest of networks."""
    links = [_of(network) for network in networks if network.layout.ranks > 1]
    return max(links, key=lambda link: link.bandwidth or 0.0, default=None)


def _of(network: Network) -> Link:
    """What its largest and its smallest message say, whichever algorithm fits them best."""
    ranks, nodes = network.layout.ranks, network.layout.nodes
    first, last = network.fits[0], network.fits[-1]
    hops = math.log2(ranks) if nodes == 1 else nodes - 1
    moved = PASSES * (ranks - 1) / ranks * last.high
    bandwidth = moved / _seconds(last, ranks, last.high)
    latency = _seconds(first, ranks, first.low) / (PASSES * hops)
    return Link(*(value if math.isfinite(value) else None for value in (bandwidth, latency)))


def _seconds(fit: RangeFit, ranks: int, size: float) -> float:
    best = fit.best
    bandwidth = best.bandwidth.value if math.isfinite(best.bandwidth.value) else None
    times = predicted_seconds(
        best.algorithm, ranks, np.array([size]), best.latency.value, bandwidth
    )
    return float(times[0]) or math.nan
