"""The time of a step of a layout as a sum of terms, each written down with its source.

A step has n = m + p - 1 turns of the pipeline: m micro-batches and p - 1 turns in which a stage
waits (GPipe, Huang et al. 2019; 1F1B, Narayanan et al. 2021). In each turn a rank computes its
share of a micro-batch and exchanges with its neighbours; once a step it exchanges gradients.
Groups lie on nodes in the order tp, cp, dp, pp, the innermost first (Megatron-LM, torchtitan and
nanotron number their ranks so): the ranks of a group on one node are ``inside``, its nodes
``between``. A ring moves (k - 1)/k of what it reduces, in k - 1 hops; a tree takes log2 k (Thakur,
Rabenseifner and Gropp, 2005). Coefficients are 0 or more and are fitted to logarithms of times.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.prediction.layouts.runs import Columns, Layout, Measured
from scalesweep.analysis.types import Floats

# Deviation (of logarithms) from which a run pulls less: it had a fault that no term stands for.
TOLERATED = 0.5
ROUNDS = 7
LEAST = 1e-30
# Standard deviation of what a term costs over what probes say: programs hide exchange behind
# computation, or send more than they must.
DOUBT = 1.0
LEAST_SPREAD = 0.05


@dataclass(frozen=True, eq=False)
class Parts:
    """What terms are made of, ``[layout]``."""

    columns: Columns
    turns: Floats
    inner: Mapping[str, Floats]
    outer: Mapping[str, Floats]

    @property
    def share(self) -> Floats:
        """Of the model that a rank holds."""
        return 1 / (self.columns.tp * self.columns.pp)


def _parts(columns: Columns) -> Parts:
    left = columns.per_node.copy()
    inner, outer = {}, {}
    for axis in ("tp", "cp", "dp"):
        size = getattr(columns, axis)
        inner[axis] = np.clip(left, 1, size)
        outer[axis] = size / inner[axis]
        left = left / inner[axis]
    turns = columns.accumulation + columns.pp - 1
    return Parts(columns, turns, inner, outer)


def _ring(size: Floats) -> Floats:
    return (size - 1) / size


@dataclass(frozen=True)
class Term:
    """One term: the part of a step that it belongs to, its formula, and its value by layout."""

    part: str
    formula: str
    value: Callable[[Parts], Floats]


def _passed(parts: Parts) -> Floats:
    """Numbers that the layers of a stage pass on in all turns."""
    c = parts.columns
    return parts.turns * c.micro_batch * c.traffic * c.layers / (c.pp * c.cp)


def _depth(parts: Parts) -> Floats:
    """Layers that a rank goes through in all turns."""
    return parts.turns * parts.columns.layers / parts.columns.pp


def _gathers(parts: Parts) -> Floats:
    """Exchanges of a sharded model: one for each micro-batch."""
    return np.asarray(parts.columns.sharded * parts.columns.accumulation, np.float64)


COMPUTE, PIPELINE, REST = "compute", "pipeline", "rest"
TERMS: Mapping[str, Term] = {
    "work": Term(COMPUTE, "n b F / (tp pp cp)", lambda t: t.turns * t.columns.micro_batch
                 * t.columns.work * t.share / t.columns.cp),
    "launch": Term(COMPUTE, "n L / pp", _depth),
    "tp ring inside": Term("tp", "n b A L / (pp cp) (i - 1)/i",
                           lambda t: _passed(t) * _ring(t.inner["tp"])),
    "tp tree inside": Term("tp", "n L / pp log2 i",
                           lambda t: _depth(t) * np.log2(t.inner["tp"])),
    "tp ring between": Term("tp", "n b A L / (pp cp) (o - 1)/o",
                            lambda t: _passed(t) * _ring(t.outer["tp"])),
    "tp hops between": Term("tp", "n L / pp (o - 1)", lambda t: _depth(t) * (t.outer["tp"] - 1)),
    "cp ring": Term("cp", "n b A L / (pp cp) (cp - 1)",
                    lambda t: _passed(t) * (t.columns.cp - 1) / t.columns.tp),
    "cp hops": Term("cp", "n L / pp (cp - 1)", lambda t: _depth(t) * (t.columns.cp - 1)),
    "ep exchange": Term("ep", "n b A L / (pp cp) (ep - 1)/ep",
                        lambda t: _passed(t) * _ring(t.columns.ep) / t.columns.tp),
    "ep hops": Term("ep", "n L / pp (ep - 1)", lambda t: _depth(t) * (t.columns.ep - 1)),
    "pp volume": Term(PIPELINE, "n b A / (tp cp) if pp > 1",
                      lambda t: t.turns * t.columns.micro_batch * t.columns.traffic
                      / (t.columns.tp * t.columns.cp) * np.minimum(t.columns.pp - 1, 1)),
    "pp hops": Term(PIPELINE, "n if pp > 1", lambda t: t.turns * np.minimum(t.columns.pp - 1, 1)),
    "dp ring inside": Term("dp", "W / (tp pp) (i - 1)/i",
                           lambda t: t.columns.weights * t.share * _ring(t.inner["dp"])),
    "dp ring between": Term("dp", "W / (tp pp) (o - 1)/o",
                            lambda t: t.columns.weights * t.share * _ring(t.outer["dp"])),
    "dp tree between": Term("dp", "W / (tp pp) log2 o",
                            lambda t: t.columns.weights * t.share * np.log2(t.outer["dp"])),
    "dp hops between": Term("dp", "o - 1", lambda t: t.outer["dp"] - 1),
    "sharded volume": Term("dp", "m W / (tp pp) (dp - 1)/dp if sharded",
                           lambda t: _gathers(t) * t.columns.weights * t.share
                           * _ring(t.columns.dp)),
    "sharded tree": Term("dp", "m log2 dp if sharded",
                         lambda t: _gathers(t) * np.log2(t.columns.dp)),
    "sharded hops": Term("dp", "m (o - 1) if sharded",
                         lambda t: _gathers(t) * (t.outer["dp"] - 1)),
    "optimiser": Term(REST, "W / (tp pp)", lambda t: t.columns.weights * t.share),
    "optimiser, sharded": Term(REST, "W / (tp pp dp) if sharded",
                               lambda t: t.columns.weights * t.share
                               / np.where(t.columns.sharded > 0, t.columns.dp, 1)),
    "step": Term(REST, "1", lambda t: np.ones(len(t.turns))),
    "nodes": Term(REST, "nodes", lambda t: t.columns.ranks / t.columns.per_node),
}  # fmt: skip


# Terms of links between nodes, and those within a node that are of the same size.
BETWEEN = (
    *("tp ring between", "tp hops between", "cp ring", "cp hops", "ep exchange", "ep hops"),
    *("pp volume", "dp ring between", "dp tree between", "dp hops between"),
    *("sharded volume", "sharded tree", "sharded hops"),
)
LIKE: Mapping[str, tuple[str, ...]] = {
    "tp ring between": ("tp ring inside",),
    "tp hops between": ("tp tree inside",),
    "dp ring between": ("dp ring inside", "sharded volume"),
}


def _design(layouts: tuple[Layout, ...]) -> Floats:
    """``[layout, term]``."""
    parts = _parts(Columns(layouts))
    return np.stack([term.value(parts) for term in TERMS.values()], axis=1)


@dataclass(frozen=True, eq=False)
class CostModel:
    """Coefficients of ``TERMS``, 0 or more."""

    coefficients: Floats

    def seconds(self, layouts: tuple[Layout, ...]) -> Floats:
        """The time of a step of each layout, in the unit of the times that it was fitted to."""
        return np.maximum(_design(layouts) @ self.coefficients, LEAST)

    def parts(self, layout: Layout) -> dict[str, float]:
        """The share of a step that each part has, the largest first; the turns in which stages wait
        are ``idle``. Parts without any are left out."""
        values = _design((layout,))[0] * self.coefficients
        whole = max(float(values.sum()), LEAST)
        turns = layout.accumulation + layout.pp - 1
        idle = (layout.pp - 1) / turns
        shares: dict[str, float] = {}
        for (name, term), value in zip(TERMS.items(), values / whole, strict=True):
            waited = idle * float(value) if name in ("work", "launch") else 0.0
            shares[term.part] = shares.get(term.part, 0.0) + float(value) - waited
            shares["idle"] = shares.get("idle", 0.0) + waited
        there = [part for part in shares.items() if part[1] > 0]
        return dict(sorted(there, key=lambda part: -part[1]))

    def slower_between(self, factor: float) -> "CostModel":
        """The same where links between nodes are slower by a factor.

        A term of links between nodes costs at least what its like within a node does: one that the
        measured scales have not shown is not free.
        """
        values = dict(zip(TERMS, self.coefficients.tolist(), strict=True))
        for name in BETWEEN:
            like = max((values[term] for term in LIKE.get(name, ())), default=0.0)
            values[name] = factor * max(values[name], like)
        return CostModel(np.array(list(values.values()), np.float64))


def fit_cost(measured: Measured) -> CostModel:
    """The model of all layouts that ran.

    Least squares of logarithms by reweighting: with weights 1/(y p) of a fit p to y, squares of
    differences are those of logarithms to first order. Runs beyond ``TOLERATED`` pull less (Huber).
    That a term costs what probes say (``Measured.expected``), to ``DOUBT``, is an observation more.
    """
    from scipy.optimize import nnls

    there = measured.where(measured.ran)
    terms, seconds = _design(there.layouts), there.seconds
    sizes = np.sqrt(((terms / seconds[:, None]) ** 2).sum(axis=0))
    sizes[sizes == 0] = 1.0
    scaled = terms / sizes
    known = [place for place, name in enumerate(TERMS) if measured.expected.get(name)]
    # Of a coefficient over what is expected of it.
    probed = np.zeros((len(known), len(sizes)))
    for row, place in enumerate(known):
        probed[row, place] = 1 / (measured.expected[[*TERMS][place]] * sizes[place])
    spread = LEAST_SPREAD
    weight, sure = 1 / seconds, np.ones(len(seconds))
    coefficients = np.zeros(len(sizes))
    for _ in range(ROUNDS):
        each = weight * sure
        prior = spread / DOUBT
        rows = np.vstack([scaled * each[:, None], probed * prior])
        coefficients = nnls(rows, np.concatenate([seconds * each, np.full(len(known), prior)]))[0]
        fitted = np.maximum(scaled @ coefficients, LEAST)
        away = np.abs(np.log(seconds / fitted))
        spread = max(LEAST_SPREAD, 1.4826 * float(np.median(away)))
        sure = np.sqrt(1 / np.sqrt(np.maximum(away / TOLERATED, 1.0)))
        weight = 1 / np.sqrt(seconds * fitted)
    return CostModel(coefficients / sizes)
