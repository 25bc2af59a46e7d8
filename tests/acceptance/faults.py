"""Runs of synchronous training with planted faults, as the arrays that a program would keep.

Ranks take steps of made times and meet in the exchange of each; nothing is slept. The noise is that
of a real machine: of each step and rank, of each run, of a machine that wanders (AR), of tails.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Arrays = dict[str, Any]
# Cause -> extra ms of a step on a rank: (step, rank) -> ms.
Fault = Callable[[int, int], float]


@dataclass(frozen=True)
class Noise:
    """How times scatter, in ms: ``step`` of each step and rank, ``run`` of each run, ``rank`` of
    each rank in a run; ``memory`` of an AR(1) of the steps, ``tails`` degrees of freedom of
    Student's t (0: normal); ``spikes``: how often other work on the machine makes a rank's reading,
    computing or host time longer, by 3 ms on average."""

    step: float = 1.0
    run: float = 0.5
    rank: float = 0.0
    memory: float = 0.0
    tails: float = 0.0
    spikes: float = 0.0

    def of_steps(self, draw: np.random.Generator, steps: int, ranks: int) -> Array:
        """Noise in ms, ``[step, rank]``, of standard deviation about ``step``."""
        shape = (steps, ranks)
        white = draw.standard_normal(shape)
        if self.tails:
            white = draw.standard_t(self.tails, shape)
        if self.memory:
            for row in range(1, steps):
                white[row] = self.memory * white[row - 1] + np.sqrt(1 - self.memory**2) * white[row]
        shared = self.run * draw.standard_normal() + self.rank * draw.standard_normal(ranks)
        return np.asarray(self.step * white + shared, np.float64)


@dataclass(frozen=True)
class Program:
    """A training program: ms of its base computation, reading, exchange and dispatch."""

    compute: float = 60.0
    read: float = 1.0
    exchange: float = 4.0
    inside: float = 0.5
    faults: Mapping[str, Fault] = field(default_factory=dict)


def planted_run(
    program: Program,
    ranks: int = 2,
    steps: int = 60,
    seed: int = 0,
    noise: Noise = Noise(),
    spans: tuple[str, ...] = ("between",),
) -> Arrays:
    """The arrays of a run in s; ``spans``: which of the time between steps it keeps (``between``,
    ``checkpoint``, ``validation``, ``logging``)."""
    draw = np.random.default_rng((seed, ranks))
    scatter = noise.of_steps(draw, steps, ranks)
    jitter = 0.2 * np.abs(draw.standard_normal((5, steps, ranks)))
    if noise.spikes:
        spikes = draw.exponential(3.0, (3, steps, ranks))
        jitter[:3] += np.where(draw.random((3, steps, ranks)) < noise.spikes, spikes, 0.0)

    def extra(cause: str, step: int, rank: int) -> float:
        fault = program.faults.get(cause)
        planted = 0.0 if fault is None else fault(step, rank)
        return planted * (1 + 0.003 * float(draw.standard_normal())) if planted else 0.0

    host = ("checkpoint", "validation", "logging", "between")
    kept: dict[str, Array] = {
        name: np.zeros((steps, ranks))
        for name in (*host, "input", "compute", "communication", "step")
    }
    clock = np.zeros(ranks)
    for step in range(steps):
        arrived = np.zeros(ranks)
        begun = np.zeros(ranks)
        for rank in range(ranks):
            for name in host:
                kept[name][step, rank] = extra(name, step, rank)
            idle = jitter[0, step, rank]
            kept["between"][step, rank] += idle
            clock[rank] += sum(kept[name][step, rank] for name in host)
            begun[rank] = clock[rank]
            reads = program.read + extra("input", step, rank) + jitter[1, step, rank]
            work = program.compute + scatter[step, rank] + extra("compute", step, rank)
            work += jitter[2, step, rank]
            work = max(work, 0.1)
            kept["input"][step, rank], kept["compute"][step, rank] = reads, work
            arrived[rank] = clock[rank] + reads + work + program.inside
        transfer = program.exchange + jitter[3, step, 0] + extra("transfer", step, 0)
        done = arrived.max() + transfer
        kept["communication"][step] = done - arrived
        clock = done + jitter[4, step] * 0.1
        kept["step"][step] = clock - begun
    whole = {"span_between": sum(kept[name] for name in host)} if "between" in spans else {}
    return {
        name: np.asarray(values) / 1e3
        for name, values in {
            "step_times": kept["step"], "span_input": kept["input"],
            "span_compute": kept["compute"], "span_communication": kept["communication"],
            **whole, **{f"span_{name}": kept[name] for name in host[:3] if name in spans},
        }.items()
    }  # fmt: skip


def always(ms: float, *ranks: int) -> Fault:
    """So many ms more in every step of some ranks."""
    return lambda step, rank: ms if rank in ranks else 0.0


def within(ms: float, first: int, last: int, *ranks: int) -> Fault:
    """So many ms more from a step to the one before another."""
    return lambda step, rank: ms if rank in ranks and first <= step < last else 0.0


def in_turn(ms: float, ranks: int) -> Fault:
    """So many ms more on another rank in each step."""
    return lambda step, rank: ms if step % ranks == rank else 0.0


def every(ms: float, steps: int, *ranks: int) -> Fault:
    """So many ms more in every so many-th step of some ranks."""
    return lambda step, rank: ms if rank in ranks and step % steps == steps - 1 else 0.0


def both(*faults: Fault) -> Fault:
    """Several faults at once."""
    return lambda step, rank: sum(fault(step, rank) for fault in faults)
