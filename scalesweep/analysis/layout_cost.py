"""How fast layouts will be at ranks at which none was run: a ranking by a sum of costs.

A step has n = m + p - 1 turns of the pipeline, m micro-batches and p - 1 turns in which a stage
waits (GPipe, Huang et al., 2019; 1F1B, Narayanan et al., 2021). In each turn a rank computes its
share of a micro-batch and exchanges with its neighbours; gradients are exchanged once a step. A
ring moves (k - 1)/k of what it reduces (Thakur, Rabenseifner and Gropp, 2005). Groups lie on nodes
in the order tp, cp, dp, pp, as Megatron-LM, torchtitan and nanotron number their ranks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.types import Floats

LEAST = 14  # layouts that ran, to rank others
FARTHEST = 4  # times the largest number of ranks that was run
TRIALS = 5
_ROUNDS = 3


@dataclass(frozen=True)
class Layout:
    """How a run splits its ranks and its batch.

    ``dp``: replicas of the batch; ``sharded``: whether what a rank holds is split over them;
    ``per_node``: ranks of a node. ``micro_batch`` in samples of a replica, ``accumulation``
    micro-batches of a step. Of the model: ``work`` of a sample (FLOP), ``layers``, ``traffic``
    (sequence times width) and ``weights`` (parameters); 1 if it is not known.
    """

    dp: int
    tp: int
    pp: int
    micro_batch: int
    accumulation: int
    per_node: int
    cp: int = 1
    ep: int = 1
    sharded: bool = False
    work: float = 1.0
    layers: float = 1.0
    traffic: float = 1.0
    weights: float = 1.0

    @property
    def ranks(self) -> int:
        """All ranks; those of experts lie within the others."""
        return self.dp * self.tp * self.pp * self.cp

    @property
    def global_batch(self) -> int:
        """Samples of a step."""
        return self.micro_batch * self.accumulation * self.dp

    @property
    def words(self) -> str:
        """The layout as text."""
        parts = [f"dp={self.dp} tp={self.tp} pp={self.pp}"]
        parts += [f"{n}={v}" for n, v in (("cp", self.cp), ("ep", self.ep)) if v > 1]
        parts += ["sharded"] if self.sharded else []
        return " ".join([*parts, f"micro-batch {self.micro_batch} x {self.accumulation}"])


# Layouts that ran and the seconds of their step, in any unit of time that is the same for all.
Measured = Mapping[Layout, float]


def terms_of(layouts: Sequence[Layout]) -> Floats:
    """What a step costs is made of, ``[layout, term]``; each has a coefficient of 0 or more."""
    c = pd.DataFrame(layouts).astype(np.float64)
    turns = c["accumulation"] + c["pp"] - 1
    staged = np.minimum(c["pp"] - 1, 1)
    depth = turns * c["layers"] / c["pp"]  # layers of a rank in all turns
    held = c["weights"] / (c["tp"] * c["pp"])
    size = c["micro_batch"] * c["traffic"]
    passed, handed = depth * size / c["cp"], turns * size / (c["tp"] * c["cp"]) * staged
    gathered = c["sharded"] * c["accumulation"]
    # Of an axis the neighbours on a node, and how many such groups there are.
    tp_in = np.clip(c["per_node"], 1, c["tp"])
    around = tp_in * np.clip(c["per_node"] / tp_in, 1, c["cp"])
    dp_in = np.clip(c["per_node"] / around, 1, c["dp"])
    tp_out, dp_out = c["tp"] / tp_in, c["dp"] / dp_in

    def ring(ranks: Any) -> Any:
        return (ranks - 1) / ranks

    terms = (
        # computing, and the layers
        turns * c["micro_batch"] * c["work"] / (c["tp"] * c["pp"] * c["cp"]), depth,
        # bytes and hops along tp, within a node and between nodes; along cp, ep, and pp
        passed * ring(tp_in), depth * np.log2(tp_in),
        passed * ring(tp_out), depth * (tp_out - 1),
        passed * (c["cp"] - 1) / c["tp"], depth * (c["cp"] - 1),
        passed * ring(c["ep"]) / c["tp"], handed, turns * staged,
        # gradients along dp, and sharded weights
        held * ring(dp_in), held * ring(dp_out), dp_out - 1,
        gathered * held * ring(c["dp"]), gathered * np.log2(c["dp"]),
        # the optimiser's step, and what every step takes
        held / np.where(c["sharded"] > 0, c["dp"], 1), pd.Series(1.0, c.index),
    )  # fmt: skip
    return np.stack(terms, axis=1)


def fit_cost(measured: Measured) -> Floats:
    """Coefficients of the terms: non-negative least squares of relative residuals, whose weights
    1/(y p) of a fit p to y make them those of logarithms to first order."""
    from scipy.optimize import nnls

    terms, seconds = terms_of([*measured]), np.array([*measured.values()])
    weight = 1 / seconds
    sizes = np.maximum(np.sqrt(((terms * weight[:, None]) ** 2).sum(axis=0)), 1e-30)
    coefficients = np.zeros(len(sizes))
    for _ in range(_ROUNDS):
        coefficients = nnls(terms / sizes * weight[:, None], seconds * weight)[0]
        fitted = np.maximum(terms / sizes @ coefficients, 1e-30)
        away = np.abs(np.log(seconds / fitted))  # a run with a fault pulls less
        weight = np.sqrt(0.5 / np.maximum(away, 0.5)) / np.sqrt(seconds * fitted)
    return np.asarray(coefficients / sizes)


def expected_s(measured: Measured, layouts: Sequence[Layout]) -> Floats:
    """The seconds of a step of each layout, by a fit to those that were measured."""
    return np.maximum(terms_of(layouts) @ fit_cost(measured), 1e-30)


@dataclass(frozen=True)
class Rolled:
    """The forecast of the largest measured scale from the smaller ones: its ``ranks``, the median
    ``error`` of a step (relative), and by which share the best of the ``TRIALS`` first layouts
    falls short of the best there (``loss``)."""

    ranks: int
    error: float
    loss: float


def rolled(measured: Measured) -> Rolled | None:
    """How a forecast of the largest scale did; None if too few layouts ran below it."""
    ranks = max(layout.ranks for layout in measured)
    below = {layout: s for layout, s in measured.items() if layout.ranks < ranks}
    if len(below) < LEAST:
        return None
    there = [layout for layout in measured if layout.ranks == ranks]
    batches = np.array([layout.global_batch for layout in there])
    seconds, said = np.array([measured[layout] for layout in there]), expected_s(below, there)
    rates = batches / seconds
    best = rates[np.argsort(said / batches)[:TRIALS]].max() / rates.max()
    return Rolled(ranks, float(np.median(np.abs(seconds / said - 1))), float(1 - best))


def refusal(measured: Measured, ranks: int) -> str:
    """Why layouts at so many ranks are not ranked, with what to measure; empty if they are."""
    scales = {layout.ranks for layout in measured}
    if len(measured) < LEAST or len(scales) < 2:
        return (
            f"{len(measured)} layouts ran at {len(scales)} numbers of ranks; "
            f"a ranking takes {LEAST} at two at least"
        )
    largest, per_node = max(scales), max(layout.per_node for layout in measured)
    if ranks < largest:
        return f"{ranks:,} ranks are fewer than the largest measured number ({largest:,})"
    if ranks > FARTHEST * largest:
        return (
            f"{ranks:,} ranks are more than {FARTHEST} times the largest measured number: "
            f"measure layouts at {largest * 2:,} ranks first"
        )
    if ranks > per_node >= largest:
        return (
            f"{ranks:,} ranks take more than one node of {per_node}, and no layout ran across "
            f"nodes: measure layouts at {per_node * 2:,} ranks first"
        )
    return ""


def layouts_like(measured: Measured, ranks: int) -> list[Layout]:
    """Every layout of so many ranks whose tp, pp, cp, ep, sharding and micro-batch were run, and
    which was not run itself. The global batch is the measured one, or grows with the ranks as it
    did."""
    largest = max(measured, key=lambda layout: layout.ranks)
    batch = largest.global_batch
    if len({layout.global_batch for layout in measured}) > 1:
        batch = batch * ranks // largest.ranks
    names = ("tp", "pp", "cp", "ep", "micro_batch", "sharded")
    values = (sorted({getattr(layout, name) for layout in measured}) for name in names)
    made = []
    for tp, pp, cp, ep, micro_batch, sharded in product(*values):
        dp, rest = divmod(ranks, tp * pp * cp)
        if rest or not dp or (dp * cp) % ep:
            continue
        accumulation, rest = divmod(batch, micro_batch * dp)
        if accumulation and not rest:
            made.append(
                replace(
                    largest, dp=dp, tp=tp, pp=pp, cp=cp, ep=ep, sharded=sharded,
                    micro_batch=micro_batch, accumulation=accumulation,
                )
            )  # fmt: skip
    return [layout for layout in made if layout not in measured]
