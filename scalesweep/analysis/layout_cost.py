"""How fast layouts will be at ranks at which none was run: a ranking by a sum of costs.

A step has n = m + p - 1 turns of the pipeline, m micro-batches and p - 1 turns in which a stage
waits (GPipe, Huang et al., 2019; 1F1B, Narayanan et al., 2021). In each turn a rank computes its
share of a micro-batch and exchanges with its neighbours; gradients are exchanged once a step. A
ring moves (k - 1)/k of what it reduces (Thakur, Rabenseifner and Gropp, 2005). Groups lie on nodes
in the order tp, cp, dp, pp, as Megatron-LM, torchtitan and nanotron number their ranks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from scalesweep.analysis.types import Bools, Floats

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


class _Columns:
    """Fields of layouts as arrays ``[layout]``, with what follows from them."""

    def __init__(self, layouts: Sequence[Layout]) -> None:
        def of(name: str) -> Floats:
            return np.array([getattr(layout, name) for layout in layouts], np.float64)

        self.tp, self.pp, self.cp, self.ep, self.dp = map(of, ("tp", "pp", "cp", "ep", "dp"))
        self.accumulation, self.sharded = of("accumulation"), of("sharded")
        self.turns = self.accumulation + self.pp - 1
        self.staged = np.minimum(self.pp - 1, 1)
        self.depth = self.turns * of("layers") / self.pp  # layers of a rank in all turns
        self.held = of("weights") / (self.tp * self.pp)
        passed = of("micro_batch") * of("traffic")
        self.work = self.turns * of("micro_batch") * of("work") / (self.tp * self.pp * self.cp)
        self.passed = self.depth * passed / self.cp
        self.handed = self.turns * passed / (self.tp * self.cp) * self.staged
        left = of("per_node")
        self.tp_in = np.clip(left, 1, self.tp)
        self.dp_in = np.clip(
            left / (self.tp_in * np.clip(left / self.tp_in, 1, self.cp)), 1, self.dp
        )
        self.tp_out, self.dp_out = self.tp / self.tp_in, self.dp / self.dp_in


def _ring(size: Floats) -> Floats:
    return (size - 1) / size


# What a step costs is made of: the formula of each term, whose coefficient is 0 or more.
TERMS: Mapping[str, Callable[[_Columns], Floats]] = {
    "compute": lambda c: c.work,
    "layers": lambda c: c.depth,
    "tp inside": lambda c: c.passed * _ring(c.tp_in),
    "tp hops inside": lambda c: c.depth * np.log2(c.tp_in),
    "tp between": lambda c: c.passed * _ring(c.tp_out),
    "tp hops between": lambda c: c.depth * (c.tp_out - 1),
    "cp": lambda c: c.passed * (c.cp - 1) / c.tp,
    "cp hops": lambda c: c.depth * (c.cp - 1),
    "ep": lambda c: c.passed * _ring(c.ep) / c.tp,
    "pp": lambda c: c.handed,
    "pp hops": lambda c: c.turns * c.staged,
    "dp inside": lambda c: c.held * _ring(c.dp_in),
    "dp between": lambda c: c.held * _ring(c.dp_out),
    "dp hops between": lambda c: c.dp_out - 1,
    "sharded": lambda c: c.sharded * c.accumulation * c.held * _ring(c.dp),
    "sharded hops": lambda c: c.sharded * c.accumulation * np.log2(c.dp),
    "optimiser": lambda c: c.held / np.where(c.sharded > 0, c.dp, 1),
    "step": lambda c: np.ones(len(c.tp)),
}


def _design(layouts: Sequence[Layout]) -> Floats:
    """``[layout, term]``."""
    columns = _Columns(layouts)
    return np.stack([term(columns) for term in TERMS.values()], axis=1)


@dataclass(frozen=True, eq=False)
class Measured:
    """Layouts that were run and the ``seconds[layout]`` of their step, in any unit of time that is
    the same for all; NaN if a run failed."""

    layouts: tuple[Layout, ...]
    seconds: Floats

    @cached_property
    def scale(self) -> Floats:
        """Ranks of each."""
        return np.array([layout.ranks for layout in self.layouts], np.float64)

    @cached_property
    def scales(self) -> list[int]:
        """The numbers of ranks at which something ran, ascending."""
        return sorted({int(ranks) for ranks in self.scale[np.isfinite(self.seconds)]})

    def where(self, chosen: Bools) -> "Measured":
        """Those that ran, of some."""
        kept = np.flatnonzero(chosen & np.isfinite(self.seconds))
        return Measured(tuple(self.layouts[i] for i in kept), self.seconds[kept])


def measured_of(runs: Iterable[tuple[Layout, float | None]]) -> Measured:
    """Of layouts and their seconds; one that ran several times counts by its geometric mean."""
    times: dict[Layout, list[float]] = {}
    for layout, seconds in runs:
        times.setdefault(layout, [])
        times[layout] += [] if seconds is None else [seconds]
    means = [float(np.exp(np.log(v).mean())) if v else np.nan for v in times.values()]
    return Measured(tuple(times), np.array(means, np.float64))


@dataclass(frozen=True, eq=False)
class CostModel:
    """Coefficients of ``TERMS``."""

    coefficients: Floats

    def seconds(self, layouts: Sequence[Layout]) -> Floats:
        """The time of a step of each layout, in the unit of the times that it was fitted to."""
        return np.maximum(_design(layouts) @ self.coefficients, 1e-30)


def fit_cost(measured: Measured) -> CostModel:
    """The model of the layouts that ran: non-negative least squares of relative residuals, whose
    weights 1/(y p) of a fit p to y make them those of logarithms to first order."""
    from scipy.optimize import nnls

    there = measured.where(np.isfinite(measured.seconds))
    terms, weight = _design(there.layouts), 1 / there.seconds
    sizes = np.maximum(np.sqrt(((terms * weight[:, None]) ** 2).sum(axis=0)), 1e-30)
    coefficients = np.zeros(len(TERMS))
    for _ in range(_ROUNDS):
        coefficients = nnls(terms / sizes * weight[:, None], there.seconds * weight)[0]
        fitted = np.maximum(terms / sizes @ coefficients, 1e-30)
        away = np.abs(np.log(there.seconds / fitted))  # a run with a fault pulls less
        weight = np.sqrt(0.5 / np.maximum(away, 0.5)) / np.sqrt(there.seconds * fitted)
    return CostModel(coefficients / sizes)


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
    ranks = measured.scales[-1]
    below, there = measured.where(measured.scale < ranks), measured.where(measured.scale == ranks)
    if len(below.layouts) < LEAST:
        return None
    said = fit_cost(below).seconds(there.layouts)
    rates = np.array([layout.global_batch for layout in there.layouts]) / there.seconds
    best = rates[np.argsort(said / _batches(there.layouts))[:TRIALS]].max() / rates.max()
    return Rolled(ranks, float(np.median(np.abs(there.seconds / said - 1))), float(1 - best))


def _batches(layouts: Sequence[Layout]) -> Floats:
    return np.array([layout.global_batch for layout in layouts], np.float64)


def ranking(measured: Measured, layouts: Sequence[Layout]) -> list[tuple[Layout, float]]:
    """The layouts and the seconds of their steps, the highest rate first."""
    seconds = fit_cost(measured).seconds(layouts)
    order = np.argsort(seconds / _batches(layouts), kind="stable")
    return [(layouts[i], float(seconds[i])) for i in order]


def refusal(measured: Measured, ranks: int) -> str:
    """Why layouts at so many ranks are not ranked, with what to measure; empty if they are."""
    count, scales = int(np.isfinite(measured.seconds).sum()), measured.scales
    if count < LEAST or len(scales) < 2:
        return (
            f"{count} layouts ran at {len(scales)} numbers of ranks; "
            f"a ranking takes {LEAST} at two at least"
        )
    largest, per_node = scales[-1], max(layout.per_node for layout in measured.layouts)
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
    seen = measured.layouts
    largest = max(seen, key=lambda layout: layout.ranks)
    batch = largest.global_batch
    if len({layout.global_batch for layout in seen}) > 1:
        batch = batch * ranks // largest.ranks
    names = ("tp", "pp", "cp", "ep", "micro_batch", "sharded")
    values = (sorted({getattr(layout, name) for layout in seen}) for name in names)
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
    return [layout for layout in made if layout not in set(seen)]
