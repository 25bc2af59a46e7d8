"""The models: sums of terms with coefficients of 0 or more, each written down with its source.

They are of the cost of ``Series``: rank-seconds for a unit of work over ranks p. In weak scaling
that is the time of a step or epoch; in strong scaling it is p times the time of the whole, so that
Amdahl's law (b/p + a) becomes b + a p. Sources:

* 1, log2 p, p, and p log p: Ernest (Venkataraman et al., NSDI 2016), whose coefficients are not
  negative either; its work-over-machines term is the constant of a cost.
* (p - 1)/p, log2 p: bandwidth and latency of ring and tree collectives (Thakur, Rabenseifner and
  Gropp, 2005).
* 1 + p: Amdahl (1967) in strong scaling; contention, and the capacity of a shared file system that
  all ranks read from once it limits, in weak scaling.
* 1 + p + p^2: the Universal Scalability Law (Gunther, 2007), contention and coherency.
* p^(1/3), p^(1/2), log2(p)^2, p log p: single terms of the performance model normal form of
  Extra-P (Calotoiu et al., SC 2013) that have been seen in training runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.types import Floats

# Weight of a point that has half the ranks of the largest one: what is near the target counts more.
DISCOUNT = 0.65


@dataclass(frozen=True)
class Term:
    """One term of a model: its formula and what it may come from, in words."""

    formula: str
    words: str
    value: Callable[[Floats], Floats]


TERMS: Mapping[str, Term] = {
    "constant": Term("1", "work that does not depend on the ranks", lambda p: np.ones(p.shape)),
    "log": Term("log2 p", "latency of tree collectives and waiting for the slowest rank", np.log2),
    "ring": Term("(p - 1)/p", "bandwidth of ring collectives", lambda p: (p - 1) / p),
    "cube root": Term("p^(1/3)", "network of limited dimension", np.cbrt),
    "square root": Term("p^(1/2)", "network of limited dimension", np.sqrt),
    "linear": Term(
        "p", "work that every rank repeats, contention, or a shared file system", lambda p: p
    ),
    "log squared": Term("log2(p)^2", "nested tree collectives", lambda p: np.square(np.log2(p))),
    "linear log": Term(
        "p log2 p", "collectives that the work does not shrink", lambda p: p * np.log2(p)
    ),
    "square": Term("p^2", "every rank waiting for every other one", lambda p: p * p),
}


# The term of a sum by parts that a probe gives: what the exchange costs beyond computation.
COLLECTIVE = "collective"


def formula_of(term: str) -> str:
    """The formula of a term, or what takes its place."""
    return "measured exchange" if term == COLLECTIVE else TERMS[term].formula


def words_of(term: str) -> str:
    """What a term may come from, with its formula."""
    if term == COLLECTIVE:
        return "the exchange of gradients, as probes measured the network"
    return f"{TERMS[term].words} ({TERMS[term].formula})"


@dataclass(frozen=True)
class Model:
    """A sum of terms; ``prior``: its weight before any forecast, larger where it is simpler.

    ``name`` takes the place of the formula; ``exposed`` gives the term ``COLLECTIVE``.
    """

    terms: tuple[str, ...]
    prior: float
    name: str = ""
    exposed: Callable[[Floats], Floats] | None = None

    @property
    def formula(self) -> str:
        """The model as text, such as ``a + b log2 p``."""
        if self.name:
            return self.name
        parts = [
            letter if name == "constant" else f"{letter} {TERMS[name].formula}"
            for letter, name in zip("abc", self.terms, strict=False)
        ]
        return " + ".join(parts)


def _model(prior: float, *growing: str) -> Model:
    return Model(("constant", *growing), prior)


# Few parameters and slow growth come first: what grows fast is believed once it has forecast well.
MODELS: Mapping[str, tuple[Model, ...]] = {
    "weak": (
        _model(1.0),
        _model(2.0, "log"),
        _model(1.0, "ring"),
        _model(1.0, "cube root"),
        _model(0.5, "square root"),
        _model(0.1, "linear"),
        _model(0.3, "log squared"),
        _model(1.0, "ring", "log"),
        _model(0.5, "ring", "cube root"),
        _model(0.2, "ring", "square root"),
        _model(0.05, "ring", "linear"),
        _model(0.1, "log", "linear"),
        _model(0.01, "linear", "square"),
    ),
    # What does not shrink with the work of a rank takes a growing share, so that each has a term
    # that grows at least as p^(1/2); perfect scaling is any of them without it.
    "strong": (
        _model(1.0, "square root"),
        _model(2.0, "linear"),
        _model(0.5, "linear log"),
        _model(0.5, "log", "linear"),
        _model(0.5, "square root", "linear"),
        _model(0.3, "ring", "linear"),
        _model(0.1, "linear", "square"),
    ),
}


def design(model: Model, ranks: Floats) -> Floats:
    """``[count, term]``: the terms of a model at rank counts."""

    def value(name: str) -> Floats:
        own = model.exposed if name == COLLECTIVE else None
        return own(ranks) if own else TERMS[name].value(ranks)

    return np.stack([value(name) for name in model.terms], axis=1)


def fit(terms: Floats, ranks: Floats, cost: Floats, part: Floats | None = None) -> Floats:
    """Coefficients, 0 or more, of terms ``[point, term]`` for costs ``[point]``, or for a ``part``
    of them.

    Least squares of deviations over the costs, discounted by ``DISCOUNT`` per halving of the ranks.
    """
    root = np.sqrt(DISCOUNT ** np.log2(ranks[-1] / ranks))
    wanted = root if part is None else root * part / cost
    scaled = terms * (root / cost)[:, None]
    size = np.sqrt((scaled**2).sum(axis=0))
    size[size == 0] = 1.0
    if terms.shape[1] == 1:
        return np.array([float(scaled[:, 0] @ wanted) / float(size[0] ** 2)])
    from scipy.optimize import nnls

    return np.asarray(nnls(scaled / size, wanted)[0] / size, np.float64)
