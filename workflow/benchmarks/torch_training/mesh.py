"""How the ranks of a run lie on a mesh: ``pp x dp_replicate x dp_shard x tp``, ``tp`` fastest.

Neighbouring ranks, those of one node, so talk most: about activations in every layer (``tp``), then
about shards of parameters (``dp_shard``), copies of gradients (``dp_replicate``) and, least, about
activations between stages (``pp``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Shape(NamedTuple):
    """Ranks along each dimension of the mesh; neighbours are so in the last one."""

    pp: int
    dp_replicate: int
    dp_shard: int
    tp: int

    @property
    def ranks(self) -> int:
        """Ranks of the mesh."""
        return self.pp * self.dp_replicate * self.dp_shard * self.tp

    @property
    def data_ranks(self) -> int:
        """Parts into which the ranks divide the samples of a step."""
        return self.dp_replicate * self.dp_shard


class Position(NamedTuple):
    """Where a rank lies on the mesh."""

    pp: int
    dp_replicate: int
    dp_shard: int
    tp: int
    data: int  # which part of the samples it computes with: all its pp x tp ranks share them


def shape_of(params: Mapping[str, Any]) -> Shape:
    """The mesh of a run; sizes that are null follow from the others, as benchmark.yaml says.

    With ``ddp`` and independent ranks all data-parallel ranks are copies, with ``fsdp2`` they are
    shards of one copy.
    """
    pp, tp = params["pp"], params["tp"]
    copies, shards = params["dp_replicate"], params["dp_shard"]
    data = params["ranks"] // (pp * tp)
    if shards is None:
        shards = data // (copies or 1) if params["data_parallel"] == "fsdp2" else 1
    if copies is None:
        copies = data // shards
    return Shape(pp, copies, shards, tp)


def position_of(shape: Shape, rank: int) -> Position:
    """Where a rank lies."""
    pp, copy, shard, tp = (int(place) for place in np.unravel_index(rank, shape))
    return Position(pp, copy, shard, tp, data=copy * shape.dp_shard + shard)


def stages_of(position: Position, shape: Shape, virtual_stages: int) -> list[int]:
    """The numbers of the pipeline's stages that a rank computes, in the order of the layers."""
    return [position.pp + turn * shape.pp for turn in range(virtual_stages)]
