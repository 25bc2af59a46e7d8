"""The model by Megatron-LM's dump of arguments: its shape, and how many parameters that makes."""

from dataclasses import dataclass
from typing import Any

from scalesweep.importers.training_logs.model_facts import count, flag, mixture, stated
from scalesweep.importers.training_logs.program import Facts

_NORMS = {"LayerNorm": 2, "RMSNorm": 1}  # vectors of a normalisation
_LEARNED = {"learned_absolute": True, "rope": False, "none": False}


@dataclass(frozen=True)
class MegatronShape:
    """What the parameters of a dense decoder follow from."""

    layers: int
    width: int
    heads: int
    groups: int
    head_width: int
    ffn_width: int
    vocabulary: int
    positions: int  # that have learned vectors
    norms: int
    gated: bool
    untied: bool
    biases: bool
    qkv_biases: bool


def described(facts: Facts) -> dict[str, Any]:
    """Parameters of a point that only follow from several arguments, or go by other words."""
    built = facts.get("built", "GPT")
    family = mixture(facts.get("experts")) or (None if built == "GPT" else built)
    grouped, untied = flag(facts.get("grouped")), flag(facts.get("untied"))
    groups = facts.get("query_groups") if grouped else facts.get("kv_heads", facts.get("heads"))
    narrow = [name for name in ("fp8", "fp4") if facts.get(name, "None") not in ("None", "False")]
    again = {"None": "none", "full": "full", "selective": "selective"}
    return stated(
        family=family,
        kv_heads=count(groups),
        tied=None if untied is None else not untied,
        learned_positions=_LEARNED.get(facts.get("positions", "")),
        recompute=again.get(facts.get("recomputed", "")),
        quantization={"fp8": "float8", "fp4": "float4"}[narrow[-1]] if narrow else None,
    )


def shape_of(facts: Facts) -> MegatronShape | None:
    """The shape that the arguments state; None where one is missing, or of another attention."""
    if flag(facts.get("latent")) or flag(facts.get("qk_norm")) or count(facts.get("mtp")):
        return None
    known = described(facts)
    sizes = [
        count(facts.get(name))
        for name in ("layers", "width", "heads", "head_width", "ffn_width", "vocabulary")
    ]
    flags = [flag(facts.get(name)) for name in ("gated", "untied", "biases")]
    learned, groups = known.get("learned_positions"), known.get("kv_heads")
    positions = count(facts.get("most_positions")) if learned else 0
    norms = _NORMS.get(facts.get("norm", ""))
    others = [learned, groups, positions, norms]
    if any(value is None for value in (*sizes, *flags, *others)):
        return None
    layers, width, heads, head_width, ffn_width, vocabulary = (size or 0 for size in sizes)
    gated, untied, biases = (bool(it) for it in flags)
    return MegatronShape(
        layers, width, heads, groups or 0, head_width, ffn_width, vocabulary, positions or 0,
        norms or 0, gated, untied, biases, biases or bool(flag(facts.get("qkv_biases"))),
    )  # fmt: skip


def parameters_of(shape: MegatronShape) -> int:
    """Trained parameters (megatron/core/models/gpt): 354,871,296 for the 345M of its examples,
    8,030,261,248 for Llama 3.1 8B."""
    queries, keys = shape.heads * shape.head_width, shape.groups * shape.head_width
    inner = shape.ffn_width * (2 if shape.gated else 1)
    matrices = shape.width * (2 * queries + 2 * keys + inner + shape.ffn_width)
    biases = (2 * shape.width + inner) * shape.biases + (queries + 2 * keys) * shape.qkv_biases
    norm = shape.norms * shape.width
    tables = shape.vocabulary * shape.width * (2 if shape.untied else 1)
    return (
        shape.layers * (matrices + biases + 2 * norm)
        + norm
        + tables
        + shape.positions * shape.width
    )
