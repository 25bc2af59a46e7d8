"""Simulated sweeps of layouts of which the truth is known.

The program behind them is none of ``scalesweep.analysis.layout_cost``: products of
small micro-batches are slow, gradients are exchanged behind computation and only what is left over
counts, links between nodes become slower with the nodes, some runs are slowed down for no reason
that a layout has, and all times scatter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.layout_cost import Layout

PER_NODE, BATCH, SEQUENCE = 8, 256, 4096
DEVICE = 80e9  # bytes


@dataclass(frozen=True)
class Program:
    """What is simulated: a transformer on a machine.

    ``peak`` FLOP/s, links in bytes/s, latencies in seconds; ``saturated``: tokens times width over
    tp at which products reach half of ``peak``; ``hidden``: share of computation behind which
    gradients are exchanged; ``crowd``: nodes at which links between nodes have half their rate.
    ``scatter`` of logarithms; ``slow``: share of
    runs that take up to four times as long.
    """

    layers: int = 32
    width: int = 4096
    parameters: float = 8e9
    peak: float = 6e14
    saturated: float = 2e6
    inside: float = 3e11
    between: float = 4e10
    latency: float = 2e-5
    hidden: float = 0.5
    crowd: float = 64.0
    scatter: float = 0.03
    slow: float = 0.1

    @property
    def flop(self) -> float:
        """Of a sample: 6 N + 12 L d T of a token (PaLM, arXiv 2204.02311)."""
        return (6 * self.parameters + 12 * self.layers * self.width * SEQUENCE) * SEQUENCE


def draw_program(random: np.random.Generator) -> Program:
    """A transformer of 1 to 20 thousand million parameters on a machine."""
    layers, width = [(16, 2048), (24, 3072), (32, 4096), (40, 5120)][random.integers(4)]
    return Program(
        layers, width, 12.5 * layers * width**2,
        saturated=2e6 * random.lognormal(0, 0.5),
        between=4e10 * random.lognormal(0, 0.4), latency=2e-5 * random.lognormal(0, 0.5),
        hidden=random.uniform(0.2, 0.8), crowd=64 * random.lognormal(0, 0.6),
        scatter=random.uniform(0.01, 0.05), slow=random.uniform(0.0, 0.15),
    )  # fmt: skip


def layouts_on(program: Program, nodes: int) -> Iterator[Layout]:
    """Every layout of powers of two on so many nodes of ``PER_NODE``, with ``BATCH``."""
    ranks = nodes * PER_NODE
    powers = [2**i for i in range(9)]
    for tp in powers[:5]:
        for pp in powers[:5]:
            dp = ranks // (tp * pp)
            if dp < 1 or dp > BATCH or program.layers % pp:
                continue
            for micro_batch in (1, 2, 4, 8):
                accumulation = BATCH // (dp * micro_batch)
                for sharded in (False, True):
                    if accumulation:
                        yield Layout(
                            dp, tp, pp, micro_batch, accumulation, PER_NODE, sharded=sharded,
                            work=program.flop, layers=program.layers,
                            traffic=float(SEQUENCE * program.width), weights=program.parameters,
                        )  # fmt: skip


def bytes_of(program: Program, layout: Layout) -> float:
    """What a rank holds: weights and gradients of 2 bytes, an optimiser of 12, activations of 34
    bytes a token, width and layer (Korthikanti et al., arXiv 2205.05198), of the micro-batches that
    are in flight in the first stage."""
    held = program.parameters / (layout.tp * layout.pp)
    state = held * (4 + 12 / (layout.dp if layout.sharded else 1))
    flight = min(layout.pp, layout.accumulation) * layout.micro_batch
    layers = program.layers / layout.pp
    return state + 34 * SEQUENCE * program.width * layers * flight / layout.tp


def seconds_of(program: Program, layout: Layout) -> float:
    """The time of a step, without scatter."""
    nodes = max(1.0, layout.ranks / PER_NODE)
    between = program.between / (1 + nodes / program.crowd)

    def exchange(size: float, ranks: int, inner: int) -> float:
        """An all-reduce of bytes over ranks of which ``inner`` are neighbours on a node."""
        if ranks == 1:
            return 0.0
        link = program.inside if ranks <= inner else between
        hops = np.log2(ranks) * program.latency * (1 if ranks <= inner else 3)
        return float(2 * (ranks - 1) / ranks * size / link + hops)

    tokens = layout.micro_batch * SEQUENCE
    filled = tokens * program.width / layout.tp
    rate = program.peak * filled / (filled + program.saturated)
    layers = program.layers / layout.pp
    compute = program.flop * layout.micro_batch / (layout.tp * layout.pp) / rate
    compute += layers * 2e-4
    activation = 2.0 * tokens * program.width
    tensor = 4 * layers * exchange(activation, layout.tp, PER_NODE)
    hop = activation / between / layout.tp + program.latency if layout.pp > 1 else 0.0
    turns = layout.accumulation + layout.pp - 1
    gradients = 2 * program.parameters / (layout.tp * layout.pp)
    inner = max(1, PER_NODE // layout.tp)
    reduce = exchange(gradients, layout.dp, inner) * (1.1 if layout.sharded else 1.0)
    left_over = max(0.1 * reduce, reduce - program.hidden * layout.accumulation * compute)
    update = gradients * 8 / 2e12 / (layout.dp if layout.sharded else 1)
    return float(turns * (compute + tensor + hop) + left_over + update + 0.01)


def sweep(
    program: Program, nodes: Sequence[int], random: np.random.Generator, share: float = 0.5
) -> dict[Layout, float]:
    """A share of the layouts on each number of nodes that fit, as they were measured."""
    runs = {}
    for number in nodes:
        for layout in layouts_on(program, number):
            if random.random() > share:
                continue
            noise = random.normal(0, program.scatter)
            if random.random() < program.slow:
                noise += random.uniform(0, np.log(4))
            if bytes_of(program, layout) <= DEVICE:
                runs[layout] = seconds_of(program, layout) * float(np.exp(noise))
    return runs
