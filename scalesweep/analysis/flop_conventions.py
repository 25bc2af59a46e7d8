"""Floating-point operations of a trained token, by each convention that publications use.

MFU and HFU (model and hardware FLOP utilisation) are FLOP per second over a peak. What counts as
FLOP differs by up to a factor of two at long sequences, so the convention is part of the name of a
metric (``mfu_palm``), and numbers of two conventions are never compared or averaged.

``N``: parameters; ``L``: layers; ``d``: width; ``T``: tokens of a sample; ``V``: vocabulary; ``f``:
width between the layers of a block's MLP; ``k``: heads of keys and values over all heads. The heads
together are taken to be as wide as a token.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from scalesweep.analysis.model_shape import ModelShape


class TokenFlop(NamedTuple):
    """FLOP of a token, forward and backward: of the blocks' weights, of attention's two products,
    and of what is never computed again."""

    weights: float
    attention: float
    rest: float = 0.0

    @property
    def model(self) -> float:
        """What the model needs, each once."""
        return self.weights + self.attention + self.rest

    def hardware(self, recompute: str) -> float:
        """The same with what the backward pass computes again: a forward pass is a third.

        ``full``: 8N + 16LdT for 6N + 12LdT (llm-foundry, scripts/train/benchmarking/README.md);
        ``selective``: attention's two products alone, so that s/(6h) becomes 2s/(9h) in the terms
        of Korthikanti et al. (arXiv 2205.05198, appendix A). Equation 8 there prints s/(3h); an
        author calls that an error, 2/9 being right (NVIDIA/Megatron-LM, issue 523).
        """
        again = {"none": 0.0, "selective": self.attention, "full": self.weights + self.attention}
        return self.model + again[recompute] / 3


class Convention(NamedTuple):
    """What counts as FLOP: the formula per token, and who publishes by it.

    ``flop`` raises TypeError where the shape does not state what the formula needs (it computes
    with None); it is None itself where FLOP are not worked out from a shape. ``aliases``: names
    that mean the same.
    """

    name: str
    formula: str
    source: str
    flop: Callable[[Any], TokenFlop] | None
    aliases: tuple[str, ...] = ()


def token_flops(shape: ModelShape) -> dict[str, TokenFlop]:
    """FLOP of a token by every convention that the shape states enough for."""
    flops = {}
    for name, convention in CONVENTIONS.items():
        if convention.flop:
            with suppress(TypeError):
                flops[name] = convention.flop(shape)
    return flops


def _attention(shape: Any) -> float:
    """12 L d T: two products of 2 d T each in every block, three times."""
    return 12.0 * shape.layers * shape.width * shape.sequence  # type: ignore[no-any-return]


def _positions(shape: Any) -> float:
    """Parameters of learned vectors of positions."""
    if shape.learned_positions is None:
        raise TypeError("not stated")
    return float(shape.sequence * shape.width) if shape.learned_positions else 0.0


def _tables(shape: Any) -> float:
    """Parameters that are looked up: a tied table of tokens is the matrix of the last layer too."""
    if shape.tied is None:
        raise TypeError("not stated")
    table = shape.vocabulary * shape.width
    return _positions(shape) + (0.0 if shape.tied else float(table))


def _products(shape: Any) -> TokenFlop:
    """The products of the blocks and of the last layer one by one, with attention in full."""
    keys = 1.0 if shape.kv_heads is None else shape.kv_heads / shape.heads
    per_block = shape.width * (1 + keys) + shape.ffn_width * (1.5 if shape.gated else 1.0)
    weights = 12.0 * shape.layers * shape.width * per_block
    return TokenFlop(weights, _attention(shape), 6.0 * shape.width * shape.vocabulary)


def _causal_products(shape: Any) -> TokenFlop:
    whole = _products(shape)
    return whole._replace(attention=whole.attention / 2)


COUNTED, UNSTATED = "counted", "unstated"
_ALL = (
    Convention(
        "parameters_only", "6 N",
        "Kaplan et al., arXiv 2001.08361, section 2.1; llm-foundry's mfu*",
        lambda shape: TokenFlop(6 * shape.parameters, 0.0),
    ),
    Convention(
        "palm", "6 N + 12 L d T",
        "Chowdhery et al., arXiv 2204.02311, appendix B; llm-foundry, "
        "scripts/train/benchmarking/README.md",
        lambda shape: TokenFlop(6 * shape.parameters, _attention(shape)), ("llm_foundry",),
    ),
    Convention(
        "nanogpt", "6 (N - learned positions) + 12 L d T",
        "nanoGPT, model.py: estimate_mfu",
        lambda shape: TokenFlop(6 * (shape.parameters - _positions(shape)), _attention(shape)),
    ),
    Convention(
        "torchtitan", "6 (N - embeddings) + 12 L d T",
        "torchtitan, torchtitan/models/utils.py: get_dense_model_nparams_and_flops",
        lambda shape: TokenFlop(6 * (shape.parameters - _tables(shape)), _attention(shape)),
    ),
    Convention(
        "megatron", "12 L d (d (1 + k) + f, or 1.5 f with a gate) + 6 L d T + 6 d V",
        "Megatron-LM, megatron/training/training.py: num_floating_point_operations; MaxText since "
        "2025-07 (pull request 1988)", _causal_products, ("maxtext",),
    ),
    Convention(
        "megatron_full", "12 L d (d (1 + k) + f, or 1.5 f with a gate) + 12 L d T + 6 d V",
        "Narayanan et al., arXiv 2104.04473, appendix: Megatron-LM before it halved attention "
        "(issue 831); MaxText before 2025-07", _products, ("maxtext_full",),
    ),
    Convention(COUNTED, "as the framework counted them", "the program's own counter", None),
    Convention(UNSTATED, "not stated by the source", "a source that does not say it", None),
)  # fmt: skip
CONVENTIONS: Mapping[str, Convention] = {convention.name: convention for convention in _ALL}
_BY_NAME = {name: it for it in _ALL for name in (it.name, *it.aliases)}

# What a utilisation or a rate of FLOP is called, before its convention.
MFU, HFU = "mfu", "hfu"
_STEMS = (
    *(MFU, HFU, "model_flop_rate", "hardware_flop_rate"),
    *("flops_per_device", "hardware_flops_per_device"),  # as logs of training programs have it
)
_NAME = re.compile(rf"({'|'.join(_STEMS)})(?:_(.+))?")


class FlopMetric(NamedTuple):
    """A metric that counts FLOP: what it is, and by which convention (None: one that is not known
    here). ``named``: as its name has it; empty where that names none."""

    stem: str
    convention: Convention | None
    named: str


def flop_metric(name: str) -> FlopMetric | None:
    """What the name of a metric says of FLOP: ``mfu_palm``; None for any other metric."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    named = match[2] or ""
    return FlopMetric(match[1], _BY_NAME.get(named), named)


def is_share(name: str) -> bool:
    """Whether a metric is a share of a peak by its name: MFU or HFU."""
    metric = flop_metric(name)
    return metric is not None and metric.stem in (MFU, HFU)


def unnamed_convention(name: str) -> str | None:
    """What is wrong with the name of a metric that counts FLOP by no known convention, and what to
    call it; None where nothing is."""
    metric = flop_metric(name)
    if metric is None or metric.convention is not None:
        return None
    allowed = ", ".join(f"{metric.stem}_{known}" for known in _BY_NAME)
    return f"which FLOP are counted is part of the name; allowed: {allowed}"


def mixed_conventions(names: Iterable[str]) -> str | None:
    """Why metrics cannot be put together: the first two of different conventions; None where they
    can, those without one among them."""
    known: dict[str, str] = {}
    for name in names:
        if metric := flop_metric(name):
            known.setdefault(metric.convention.name if metric.convention else metric.named, name)
    if len(known) < 2:
        return None
    first, second = list(known.values())[:2]
    return (
        f"{first} and {second} count FLOP by two conventions, which differ by up to a factor of "
        "two; they are never compared or averaged"
    )
