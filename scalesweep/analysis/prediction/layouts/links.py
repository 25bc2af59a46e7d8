"""What probes of the network say of the cost model's exchange terms before anything is fitted.

An all-reduce of S bytes on k ranks takes 2 (k - 1)/k S / B + 2 (k - 1) a by a ring with links of B
bytes/s and a latency a (Thakur, Rabenseifner and Gropp, 2005; ``analysis.network_fit`` fits both).
A block has two of them forward and two backward of what tensor-parallel ranks share (Shoeybi et
al., 2019, arXiv 1909.08053, section 3); gradients have one a step. What runs beside computation
costs less than that, and programs differ, so it is one observation among the measured ones.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# All-reduces of a block, forward and backward, and passes of an all-reduce over what it reduces.
IN_A_BLOCK, PASSES = 4, 2


@dataclass(frozen=True)
class Link:
    """Links of one kind: ``bandwidth`` in bytes/s, as a rank sees it in an all-reduce, ``latency``
    of a hop in seconds; None where it is not known."""

    bandwidth: float | None = None
    latency: float | None = None


def expected_costs(
    inside: Link | None, between: Link | None, number_bytes: float, weights_known: bool
) -> Mapping[str, float]:
    """Seconds that a unit of each term of ``cost.TERMS`` takes by the probes of links within a node
    and between nodes; terms that they say nothing of are left out.

    ``number_bytes``: of a number that is exchanged; ``weights_known``: whether terms of gradients
    are in parameters.
    """
    return dict(_expected(inside or Link(), between or Link(), number_bytes, weights_known))


def _expected(
    inside: Link, between: Link, number_bytes: float, weights_known: bool
) -> Iterator[tuple[str, float]]:
    for where, link in (("inside", inside), ("between", between)):
        if link.bandwidth:
            whole = PASSES * number_bytes / link.bandwidth
            yield f"tp ring {where}", IN_A_BLOCK * whole
            if weights_known:
                yield f"dp ring {where}", whole
    if inside.latency:
        yield "tp tree inside", IN_A_BLOCK * PASSES * inside.latency
    if between.latency:
        yield "tp hops between", IN_A_BLOCK * PASSES * between.latency
        yield "dp hops between", PASSES * between.latency
    if between.bandwidth:
        # Stages pass on activations forward and their gradients backward.
        yield "pp volume", 2 * number_bytes / between.bandwidth
