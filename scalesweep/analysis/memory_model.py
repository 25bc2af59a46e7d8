"""How many bytes a rank needs to train a decoder-only transformer, part by part.

States: S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models,
SC 2020 (arXiv 1910.02054), section 3. Activations: V. Korthikanti et al., Reducing activation
recomputation in large transformer models, 2022 (arXiv 2205.05198), section 4, without dropout's
masks and with attention in a fused kernel, which keeps no scores. Both as Megatron-LM's
theoretical_memory_usage.py counts them. docs/methods/memory.md has the formulas.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.model_shape import ModelShape
from scalesweep.analysis.pipeline_stages import EVEN, Stage, stages_of
from scalesweep.analysis.types import Floats

OPTIMIZERS = ("sgd", "momentum", "adam", "adamw")
SCHEDULES = ("1f1b", "gpipe", "interleaved")
# Micro-batches that a step must have for the schedule to start, by the stages of the pipeline.
LEAST_PASSES: Mapping[str, Callable[[int], int]] = {
    "one": lambda p: 1, "stages - 1": lambda p: p - 1, "stages": lambda p: p,
}  # fmt: skip
EMPTY_STAGE = "a stage of the pipeline has nothing to do"
FEW_PASSES = "the schedule takes more micro-batches than a step has"
PARTS = ("weights", "gradients", "optimizer", "activations", "logits")

_MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
_ACTIVATION_BYTES = {"float32": 4, "tf32": 4}  # of the others 2
# Of a weight, its gradient and the master weight. Below float32: weights in 16 bits, sums of
# gradients and master weights in 32, as Megatron-LM and nanotron keep them.
_STATE_BYTES = {"float32": (4, 4, 0), "tf32": (4, 4, 0)}
_MIXED_BYTES = (2, 4, 4)
_GATHERED = 2  # blocks whose weights ZeRO-3 has whole at a time: one computes, one is fetched


@dataclass(frozen=True, kw_only=True)
class MemoryLayout:
    """How ranks share the model and a step, as far as memory depends on it.

    ``shards``: data-parallel ranks among which ``zero`` divides optimiser state (1), gradients too
    (2) and weights too (3); ``passes``: micro-batches that go through the pipeline in a step;
    ``sequence_parallel``: whether tensor-parallel ranks share what lies between the matrices of a
    block as well; ``split_vocabulary``: whether they share the first and the last layer;
    ``stages``: whether the pipeline's ranks have as many blocks each, or, ``balanced``, as many
    operations with those of the last layer; ``least_passes``: how many micro-batches the schedule
    takes, one of ``LEAST_PASSES``. Bytes that are None follow from the model's dtype.
    """

    shards: int = 1
    zero: int = 0
    tp: int = 1
    pp: int = 1
    cp: int = 1
    schedule: str = "1f1b"
    virtual_stages: int = 1
    passes: int = 1
    stages: str = EVEN
    least_passes: str = "one"
    sequence_parallel: bool = True
    split_vocabulary: bool = True
    optimizer: str = "adam"
    weight_bytes: float | None = None
    gradient_bytes: float | None = None
    master_bytes: float | None = None


def unknown_of(shape: ModelShape) -> str:
    """What of a model must be known and is not, in words; empty where all of it is."""
    missing = [
        name
        for name, known in (
            ("layers", shape.layers),
            ("width", shape.width),
            ("vocabulary", shape.vocabulary),
            ("tied", shape.tied is not None),
            ("micro_batch", shape.micro_batch),
            ("dtype", shape.dtype),
            ("ffn_width or parameters", shape.ffn_width or shape.parameters),
        )
        if not known
    ]
    return ", ".join(missing)


def rank_bytes(shape: ModelShape, layout: MemoryLayout) -> Floats:
    """Bytes of ``PARTS`` on a rank of each pipeline stage: an array ``[stages, parts]``.

    ``shape`` is one of which ``unknown_of`` names nothing.
    """
    stages = pipeline_stages(shape, layout)
    return np.array([_of_stage(shape, layout, stage, place) for place, stage in enumerate(stages)])


def pipeline_stages(shape: ModelShape, layout: MemoryLayout) -> list[Stage]:
    """What each stage of the pipeline holds."""
    block = _attention_weights(shape) + _wide_weights(shape)
    head = float((shape.vocabulary or 0) * _width(shape))
    return stages_of(_layers(shape), layout.pp, layout.stages, block, head)


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


def _ffn_width(shape: ModelShape) -> float:
    """Width between the two (or, gated, three) matrices; from the parameters where not stated."""
    if shape.ffn_width:
        return shape.ffn_width
    tables = (1 if shape.tied else 2) * (shape.vocabulary or 0) * _width(shape)
    of_block = ((shape.parameters or 0) - tables) / _layers(shape)
    return max(of_block - _attention_weights(shape), 0) / (_matrices(shape) * _width(shape))


def _layers(shape: ModelShape) -> int:
    return shape.layers or 0  # ``unknown_of`` names what is not known


def _width(shape: ModelShape) -> int:
    return shape.width or 0


def _matrices(shape: ModelShape) -> int:
    return 3 if shape.gated else 2


def _key_share(shape: ModelShape) -> float:
    """Heads of keys over heads of queries; 1 where no fewer are stated."""
    return shape.kv_heads / shape.heads if shape.kv_heads and shape.heads else 1


def _attention_weights(shape: ModelShape) -> float:
    return (2 + 2 * _key_share(shape)) * _width(shape) ** 2


def _block_weights(shape: ModelShape) -> float:
    """Weights of a block: attention, the wide layers and two normalisations."""
    return _attention_weights(shape) + _wide_weights(shape) + 2 * _width(shape)


def _wide_weights(shape: ModelShape) -> float:
    return _matrices(shape) * _width(shape) * _ffn_width(shape)


def _of_stage(shape: ModelShape, layout: MemoryLayout, stage: Stage, place: int) -> list[float]:
    """Bytes of ``PARTS`` on a rank of the stage at a place (from 0)."""
    first, last = stage.embedding, stage.head
    table = (shape.vocabulary or 0) * _width(shape)
    block = _block_weights(shape) / layout.tp
    tables = first + last - (first and last and bool(shape.tied))
    held = stage.blocks * block + tables * table / _of_vocabulary(layout)
    states = _state_bytes(shape, layout)
    shards = layout.shards * layout.cp
    kept = [n / (shards if layout.zero >= z else 1) for n, z in zip(states, (3, 2, 1), strict=True)]
    gathered = _GATHERED * block if layout.zero >= 3 and shards > 1 else 0
    flying = in_flight(layout, place)
    return [
        kept[0] * held + states[0] * gathered,
        kept[1] * held,
        kept[2] * held,
        _activation_bytes(shape, layout, stage.blocks, flying),
        _logit_bytes(shape, layout) * flying if last else 0.0,
    ]


def _of_vocabulary(layout: MemoryLayout) -> int:
    return layout.tp if layout.split_vocabulary else 1


def _state_bytes(shape: ModelShape, layout: MemoryLayout) -> tuple[float, float, float]:
    """Bytes of a weight, its gradient, and what the optimiser keeps of it."""
    usual = _STATE_BYTES.get(str(shape.dtype), _MIXED_BYTES)
    asked = (layout.weight_bytes, layout.gradient_bytes, layout.master_bytes)
    weight, gradient, master = (
        known if stated is None else stated for known, stated in zip(usual, asked, strict=True)
    )
    # Moments have the type of what is updated: of the master weights where there are any.
    return weight, gradient, master + _MOMENTS[layout.optimizer] * (master or weight)


def _tokens(shape: ModelShape, layout: MemoryLayout) -> float:
    """Tokens of a micro-batch on a rank."""
    return (shape.micro_batch or 0) * shape.sequence / layout.cp


def _activation_bytes(shape: ModelShape, layout: MemoryLayout, blocks: int, flying: float) -> float:
    """Bytes that the backward pass needs of ``blocks`` blocks and ``flying`` micro-batches.

    Of a token: the inputs of two normalisations and of what follows each (4 widths, which
    tensor-parallel ranks share with sequence parallelism only), query, key, value and the output
    of the attention, and two values for each column of the wide layers, four with a gate. With full
    recomputation the input of each block, and all of the one that is computed again.
    """
    each = _ACTIVATION_BYTES.get(str(shape.dtype), 2) * _tokens(shape, layout)
    around = 4 * _width(shape) / (layout.tp if layout.sequence_parallel else 1)
    wide = (4 if shape.gated else 2) * _ffn_width(shape)
    inside = ((2 + 2 * _key_share(shape)) * _width(shape) + wide) / layout.tp
    if shape.recompute == "full":
        kept = _width(shape) / (layout.tp if layout.sequence_parallel else 1)
        return each * (blocks * flying * kept + (around + inside) * (blocks > 0))
    return each * blocks * flying * (around + inside)


def _logit_bytes(shape: ModelShape, layout: MemoryLayout) -> float:
    """Bytes of logits, their copy in float32 where they have 16 bits, softmax and gradient."""
    each = 12 if str(shape.dtype) in _ACTIVATION_BYTES else 14
    return each * _tokens(shape, layout) * (shape.vocabulary or 0) / _of_vocabulary(layout)
