"""The shape of a decoder-only transformer and of its batch: what FLOP and bytes follow from.

A value that a source does not state is None, and nothing is worked out from it.
"""

from dataclasses import dataclass

# How much of the forward pass the backward pass computes again: nothing, attention's products
# only (Korthikanti et al., arXiv 2205.05198), or all of it.
RECOMPUTE = ("none", "selective", "full")
# Types of the numbers that products are computed in, as data sheets list them.
DTYPES = ("float32", "tf32", "bfloat16", "float16", "float8")


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A decoder-only transformer and its batch.

    ``parameters``: trained ones, with all embeddings, those used twice counted once. ``width``: of
    a token between blocks; ``sequence``: tokens of a sample; ``ffn_width``: of the layers between
    two blocks' attention, of each of the two branches where ``gated``. ``tied``: whether the last
    layer takes the weights of the table of tokens; ``learned_positions``: whether there is a vector
    of parameters for each position of a sample. ``micro_batch``: samples of a data-parallel
    rank in a forward pass, of which a step has ``accumulation``; ``global_batch``: samples of a
    step of all ranks. ``dtype``: one of ``DTYPES``; ``float8_share``: of the model's FLOP that are
    computed in float8, the others being in bfloat16. ``device``: what each rank computes on, a name
    of ``device_peaks.DEVICES``.
    """

    sequence: int
    layers: int | None = None
    width: int | None = None
    parameters: float | None = None
    heads: int | None = None
    kv_heads: int | None = None
    ffn_width: int | None = None
    gated: bool = False
    vocabulary: int | None = None
    tied: bool | None = None
    learned_positions: bool | None = None
    recompute: str | None = None
    micro_batch: int | None = None
    accumulation: int | None = None
    global_batch: int | None = None
    dtype: str | None = None
    float8_share: float | None = None
    device: str | None = None
