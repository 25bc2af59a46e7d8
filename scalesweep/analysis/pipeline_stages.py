"""Which parts of a decoder-only transformer each stage of a pipeline holds, by two rules."""

from collections.abc import Iterator
from dataclasses import dataclass

EVEN, BALANCED = "even", "balanced"
SPLITS = (EVEN, BALANCED)
BLOCK, EMBEDDING, HEAD, OTHER = "block", "embedding", "head", "other"


@dataclass(frozen=True)
class Stage:
    """What a stage holds: blocks, the first layer, the last one with its logits, and whether it has
    anything at all (the last normalisation and the loss count)."""

    blocks: int
    embedding: bool
    head: bool
    busy: bool


def stages_of(layers: int, stages: int, split: str, block: float, head: float) -> list[Stage]:
    """What each stage holds.

    ``even``: the first stages have one block more where they do not divide; the first layer is on
    the first stage, the last on the last. ``balanced``: parts in the order of the forward pass; a
    stage ends with the part that takes the cost so far beyond its share of all. ``block`` and
    ``head`` are the multiplications of a block and of the last layer, all else costs nothing
    (nanotron, ``build_model`` in models/base.py; its loss and a cast are parts of their own).
    """
    if split == EVEN:
        least, more = divmod(layers, stages)
        held = [least + (stage < more) for stage in range(stages)]
        return [
            Stage(n, i == 0, i == stages - 1, bool(n) or i in (0, stages - 1))
            for i, n in enumerate(held)
        ]
    lists: list[list[str]] = [[] for _ in range(stages)]
    whole, so_far, stage = layers * block + head, 0.0, 0
    for part, cost in _parts(layers, block, head):
        lists[stage].append(part)
        so_far += cost
        if so_far > whole * (stage + 1) / stages and stage + 1 < stages:
            stage += 1
    return [
        Stage(parts.count(BLOCK), EMBEDDING in parts, HEAD in parts, bool(parts)) for parts in lists
    ]


def _parts(layers: int, block: float, head: float) -> Iterator[tuple[str, float]]:
    """The parts in the order of the forward pass, and what each costs."""
    yield EMBEDDING, 0.0
    yield from [(BLOCK, block)] * layers
    yield from [(OTHER, 0.0), (HEAD, head), (OTHER, 0.0), (OTHER, 0.0)]
