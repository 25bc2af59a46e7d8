"""How many bytes a rank needs to train a decoder-only transformer, part by part.

States: S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models,
SC 2020 (arXiv 1910.02054), section 3. Activations: V. Korthikanti et al., Reducing activation
recomputation in large transformer models, 2022 (arXiv 2205.05198), section 4, without dropout's
masks and with attention in a fused kernel, which keeps no scores. Both as Megatron-LM's
theoretical_memory_usage.py counts them. docs/methods/memory.md has the formulas.

What a rank needs is ``states`` x (weights, gradients, optimiser) + ``activations`` x activations
+ ``logits`` x logits + ``overhead``, constants fitted to measured peaks. That a constant is near
its default is an observation beside the measured ones, so that few points change little. Residuals
are ratios.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.types import Floats

# Micro-batches that a step must have for the schedule to start, by the stages of the pipeline.
LEAST_PASSES: Mapping[str, Callable[[int], int]] = {
    "one": lambda p: 1, "stages - 1": lambda p: p - 1, "stages": lambda p: p,
}  # fmt: skip
EMPTY_STAGE = "a stage of the pipeline has nothing to do"
FEW_PASSES = "the schedule takes more micro-batches than a step has"
PARTS = ("weights", "gradients", "optimizer", "activations", "logits")

_MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
_WIDE_TYPES = ("float32", "tf32")
# Bytes of a weight, its gradient and the master weight. Below float32: weights in 16 bits, sums of
# gradients and master weights in 32, as Megatron-LM and nanotron keep them.
_STATE_BYTES, _MIXED_BYTES = (4, 4, 0), (2, 4, 4)
_GATHERED = 2  # blocks whose weights ZeRO-3 has whole at a time: one computes, one is fetched


@dataclass(frozen=True, kw_only=True)
class MemoryLayout:
    """How ranks share the model and a step, as far as memory depends on it.

    ``shards``: data-parallel ranks among which ``zero`` divides optimiser state (1), gradients too
    (2) and weights too (3); ``passes``: micro-batches that go through the pipeline in a step;
    ``sequence_parallel``: whether tensor-parallel ranks share what lies between the matrices of a
    block as well; ``split_vocabulary``: whether they share the first and the last layer;
    ``stages``: whether the pipeline's ranks have as many blocks each (``even``) or as many
    operations with those of the last layer (``balanced``); ``least_passes``: how many micro-batches
    the schedule takes, one of ``LEAST_PASSES``. Bytes that are None follow from the model's dtype.
    """

    shards: int = 1
    zero: int = 0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    schedule: str = "1f1b"
    virtual_stages: int = 1
    passes: int = 1
    stages: str = "even"
    least_passes: str = "one"
    sequence_parallel: bool = True
    split_vocabulary: bool = True
    optimizer: str = "adam"
    weight_bytes: float | None = None
    gradient_bytes: float | None = None
    master_bytes: float | None = None


class Stage(NamedTuple):
    """What a stage of the pipeline holds: blocks, the first layer, the last one with its logits,
    and whether it has anything at all (the last normalisation and the loss count)."""

    blocks: int
    embedding: bool
    head: bool
    busy: bool


def unknown_of(shape: ModelShape) -> str:
    """What of a model must be known and is not, in words; empty where all of it is."""
    known = {
        **{name: getattr(shape, name) for name in ("layers", "width", "vocabulary")},
        "tied": shape.tied is not None,
        **{name: getattr(shape, name) for name in ("micro_batch", "dtype")},
        "ffn_width or parameters": shape.ffn_width or shape.parameters,
    }
    return ", ".join(name for name, value in known.items() if not value)


@dataclass(frozen=True)
class _Sizes:
    """The weights of a model of which ``unknown_of`` names nothing, in values."""

    layers: int
    width: int
    keys: float  # heads of keys over heads of queries; 1 where no fewer are stated
    ffn_width: float
    attention: float
    wide: float
    table: float

    @staticmethod
    def of(shape: ModelShape) -> "_Sizes":
        layers, width = shape.layers or 0, shape.width or 0
        keys = shape.kv_heads / shape.heads if shape.kv_heads and shape.heads else 1.0
        attention = (2 + 2 * keys) * width**2
        table = float((shape.vocabulary or 0) * width)
        matrices = 3 if shape.gated else 2
        ffn = float(shape.ffn_width or 0)
        if not ffn:  # from the parameters
            block = ((shape.parameters or 0) - (1 if shape.tied else 2) * table) / layers
            ffn = max(block - attention, 0) / (matrices * width)
        return _Sizes(layers, width, keys, ffn, attention, matrices * width * ffn, table)


def rank_bytes(shape: ModelShape, layout: MemoryLayout) -> Floats:
    """Bytes of ``PARTS`` at the peak on a rank of each pipeline stage: ``[stages, parts]``.

    The peak is the larger of the backward pass (activations, logits, and gradients that are kept
    from one micro-batch or step to the next) and the optimiser's step (gradients, and the copy that
    PyTorch's Adam makes); weights and the optimiser's state are there in both. ``shape`` is one of
    which ``unknown_of`` names nothing.
    """
    sizes = _Sizes.of(shape)
    stages = enumerate(pipeline_stages(shape, layout))
    return np.array([_of_stage(shape, sizes, layout, stage, place) for place, stage in stages])


def pipeline_stages(shape: ModelShape, layout: MemoryLayout) -> list[Stage]:
    """What each stage of the pipeline holds.

    ``even``: the first stages have one block more where they do not divide; the first layer is on
    the first stage, the last on the last. ``balanced``: parts in the order of the forward pass; a
    stage ends with the part that takes the multiplications (of blocks and the last layer) so far
    beyond its share of all (nanotron, ``build_model`` in models/base.py; its loss and a cast are
    parts of their own).
    """
    sizes, count = _Sizes.of(shape), layout.pp
    if layout.stages == "even":
        least, more = divmod(sizes.layers, count)
        held = [least + (place < more) for place in range(count)]
        ends = (0, count - 1)
        return [Stage(n, i == 0, i == ends[1], bool(n) or i in ends) for i, n in enumerate(held)]
    block = sizes.attention + sizes.wide
    parts = [("embedding", 0.0), *[("block", block)] * sizes.layers]
    parts += [("", 0.0), ("head", sizes.table), ("", 0.0), ("", 0.0)]
    lists: list[list[str]] = [[] for _ in range(count)]
    whole, so_far, place = sum(cost for _, cost in parts), 0.0, 0
    for part, cost in parts:
        lists[place].append(part)
        so_far += cost
        if so_far > whole * (place + 1) / count and place + 1 < count:
            place += 1
    return [Stage(of.count("block"), "embedding" in of, "head" in of, bool(of)) for of in lists]


def obstacle(shape: ModelShape, layout: MemoryLayout) -> str:
    """What keeps a run from starting whatever memory it has; empty where nothing is known."""
    if not all(stage.busy for stage in pipeline_stages(shape, layout)):
        return EMPTY_STAGE
    return FEW_PASSES if layout.passes < LEAST_PASSES[layout.least_passes](layout.pp) else ""


def in_flight(layout: MemoryLayout, stage: int) -> float:
    """Micro-batches whose activations a stage (from 0) holds at once, at most.

    GPipe all of a step; 1F1B as many as there are stages from this one on; interleaved (Korthikanti
    et al., 4.2.3) (p - 1)/v more on the first stage than 1F1B.
    """
    p, v, m = layout.pp, layout.virtual_stages, layout.passes
    if p == 1:
        return 1
    if layout.schedule == "gpipe":
        return m
    if v == 1:
        return min(p - stage, m)
    return min(2 * (p - stage - 1) + (v - 1) * p + 1, m * v) / v


def _of_stage(
    shape: ModelShape, sizes: _Sizes, layout: MemoryLayout, stage: Stage, place: int
) -> list[float]:
    """Bytes of ``PARTS`` on a rank of the stage at a place (from 0)."""
    block = (sizes.attention + sizes.wide + 2 * sizes.width) / layout.tp
    tables = stage.embedding + stage.head - (stage.embedding and stage.head and bool(shape.tied))
    of_vocabulary = layout.tp if layout.split_vocabulary else 1
    held = stage.blocks * block + tables * sizes.table / of_vocabulary
    weight, gradient, master = _state_bytes(shape, layout)
    updated = master or weight  # moments have its type
    shards = layout.shards * layout.cp
    w, g, o = (held / (shards if layout.zero >= least else 1) for least in (3, 2, 1))
    gathered = _GATHERED * block if layout.zero >= 3 and shards > 1 else 0
    moments = _MOMENTS[layout.optimizer]
    flying, whole = in_flight(layout, place), stage.head
    activations = _activation_bytes(shape, sizes, layout, stage.blocks, flying)
    logits = _logit_bytes(shape, layout) / of_vocabulary * flying if whole else 0.0
    gradients = gradient * g
    # Sums over micro-batches, those of master weights, and DDP's buckets stay between steps.
    stay = layout.passes > 1 or master > 0 or (layout.zero == 0 and shards > 1)
    kept = gradients if stay else 0.0
    # PyTorch's Adam copies what it updates; those that keep master weights are fused.
    update = gradients + (0.0 if master else updated * o * (moments > 1))
    if update > activations + logits + kept:
        kept, activations, logits = update, 0.0, 0.0
    return [weight * (w + gathered), kept, (master + moments * updated) * o, activations, logits]


def _state_bytes(shape: ModelShape, layout: MemoryLayout) -> tuple[float, ...]:
    """Bytes of a weight, its gradient and its master weight."""
    usual = _STATE_BYTES if str(shape.dtype) in _WIDE_TYPES else _MIXED_BYTES
    stated = (layout.weight_bytes, layout.gradient_bytes, layout.master_bytes)
    return tuple(known if own is None else own for known, own in zip(usual, stated, strict=True))


def _tokens(shape: ModelShape, layout: MemoryLayout) -> float:
    """Tokens of a micro-batch on a rank."""
    return (shape.micro_batch or 0) * shape.sequence / layout.cp


def _activation_bytes(
    shape: ModelShape, sizes: _Sizes, layout: MemoryLayout, blocks: int, flying: float
) -> float:
    """Bytes that the backward pass needs of ``blocks`` blocks and ``flying`` micro-batches.

    Of a token: the inputs of two normalisations and of what follows each (4 widths, which
    tensor-parallel ranks share with sequence parallelism only), query, key, value and the output
    of the attention, and two values for each column of the wide layers, four with a gate. With full
    recomputation the input of each block, and all of the one that is computed again.
    """
    each = (4 if str(shape.dtype) in _WIDE_TYPES else 2) * _tokens(shape, layout)
    shared = layout.tp if layout.sequence_parallel else 1
    wide = (4 if shape.gated else 2) * sizes.ffn_width
    inside = ((2 + 2 * sizes.keys) * sizes.width + wide) / layout.tp
    block = 4 * sizes.width / shared + inside
    if shape.recompute == "full":
        return each * (blocks * flying * sizes.width / shared + block * (blocks > 0))
    return each * blocks * flying * block


def _logit_bytes(shape: ModelShape, layout: MemoryLayout) -> float:
    """Bytes of logits, their copy in float32 where they have 16 bits, softmax and gradient."""
    each = 12 if str(shape.dtype) in _WIDE_TYPES else 14
    return each * _tokens(shape, layout) * (shape.vocabulary or 0)


CONSTANTS = ("states", "activations", "logits", "overhead")
# Bytes that a rank has besides what the model counts: fits to PyTorch on the host, and to nanotron
# on GPUs, gave 0.4 GB.
_DEFAULT = np.array([1.0, 1.0, 1.0, 5e8])
# Standard deviation of a constant about its default before anything is measured.
_DOUBT = _DEFAULT * (0.3, 0.3, 0.5, 1.0)
_ROUNDS = 30
_LEAST_SCALE = 0.05  # of residuals
_HUBER = 1.5  # residuals beyond so many standard deviations count by their size, not its square
# Standard deviation of the logarithm of measured / predicted with the default constants, over
# published runs of two models.
DEFAULT_SPREAD = 0.25
LEAST_SPREAD = 0.1  # residuals of few points, or of points alike, say less than they seem to
LEAST_POINTS = 6  # with fewer, the spread is the default one
# Of what tensors need, what a device must have: fragments of the allocator, buffers of the exchange
# and the driver take the rest.
FRAGMENTS = 1.1
_FOLDS = 20
SURE = 0.9  # probability from which a verdict is likely

FITS, UNCERTAIN, TOO_LARGE = "fits", "uncertain", "will not fit"


@dataclass(frozen=True)
class MemoryFit:
    """Constants, with the spread of measured peaks about what they predict.

    ``spread``: standard deviation of the logarithm of measured / predicted; ``peaks``: measured
    peaks that they rest on.
    """

    states: float = 1.0
    activations: float = 1.0
    logits: float = 1.0
    overhead: float = 5e8  # bytes
    spread: float = DEFAULT_SPREAD
    peaks: int = 0

    @property
    def values(self) -> Floats:
        """The constants in the order of ``CONSTANTS``."""
        return np.array([getattr(self, name) for name in CONSTANTS])

    def needed(self, parts: Floats, of: str = "most") -> float:
        """Bytes of the rank that needs the most (``most``), of the first stage's (``first``), or of
        the mean one (``mean``). ``parts``: of ``memory_model.rank_bytes``."""
        return float(self.terms(parts, of) @ self.values)

    def terms(self, parts: Floats, of: str = "most") -> Floats:
        """What the constants multiply of that rank: states, activations, logits and 1."""
        terms = np.column_stack(
            [parts[:, :3].sum(axis=1), parts[:, 3], parts[:, 4], np.ones(len(parts))]
        )
        if of == "mean":
            return np.asarray(terms.mean(axis=0))
        return np.asarray(terms[0 if of == "first" else int((terms @ self.values).argmax())])

    def verdict(self, parts: Floats, device: float) -> str:
        """``FITS`` or ``TOO_LARGE`` where that is likely (``SURE``), else ``UNCERTAIN``."""
        distance = math.log(self.needed(parts) * FRAGMENTS / device) / self.spread
        probability = 0.5 * math.erfc(-distance / math.sqrt(2))  # that the point does not fit
        if probability >= SURE:
            return TOO_LARGE
        return FITS if probability <= 1 - SURE else UNCERTAIN


def fit_memory(measured: Sequence[tuple[Floats, float]], of: str = "most") -> MemoryFit:
    """The constants that explain measured peaks.

    ``measured``: parts and peak in bytes of each point. ``of``: which rank a peak is of
    (``MemoryFit.needed``).
    """
    fit = MemoryFit(peaks=len(measured))
    if not measured:
        return fit
    peaks = np.array([peak for _, peak in measured])
    for _ in range(3):  # which stage needs the most depends on the constants
        shares = np.array([fit.terms(parts, of) for parts, _ in measured]) / peaks[:, None]
        states, activations, logits, overhead = _fitted(shares, fit.values)
        fit = MemoryFit(states, activations, logits, overhead, peaks=len(measured))
    if len(peaks) < LEAST_POINTS:
        return fit
    logs = np.log([fit.needed(parts, of) / peak for parts, peak in measured])
    squares = float((logs**2).sum()) / max(1, len(logs) - len(CONSTANTS))
    return replace(fit, spread=max(LEAST_SPREAD, math.sqrt(squares)))


def fits_without(measured: Sequence[tuple[Floats, float]], of: str = "most") -> list[MemoryFit]:
    """For each measured point the fit to the others: without it alone, or, of many, without it and
    every ``_FOLDS``-th besides."""
    folds = min(len(measured), _FOLDS)
    fits = [
        fit_memory([point for place, point in enumerate(measured) if place % folds != fold], of=of)
        for fold in range(folds)
    ]
    return [fits[place % folds] for place in range(len(measured))]


def _fitted(shares: Floats, values: Floats) -> list[float]:
    """The constants that make the sum of ``shares`` (terms over their peak) 1, none below 0.

    By least squares of relative residuals, large ones by their size (Huber's weights), with the
    defaults as further observations.
    """
    from scipy.optimize import nnls

    for _ in range(_ROUNDS):
        residuals = np.abs(shares @ values - 1)
        scale = DEFAULT_SPREAD
        if len(residuals) >= LEAST_POINTS:
            scale = max(_LEAST_SCALE, 1.4826 * float(np.median(residuals)))
        prior = np.diag(scale / _DOUBT)
        weights = np.sqrt(1 / np.maximum(1, residuals / (_HUBER * scale)))
        rows = np.vstack([shares * weights[:, None], prior])
        scaled = rows * _DEFAULT  # overhead is a billion times the others
        factors, _ = nnls(scaled, np.concatenate([weights, prior @ _DEFAULT]))
        before, values = values, factors * _DEFAULT
        if np.allclose(before, values, rtol=1e-4):
            break
    return [float(value) for value in values]
