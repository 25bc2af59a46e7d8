"""How the ranks of a run lie on a mesh: ``pp x dp_replicate x dp_shard x tp``, ``tp`` fastest.

Neighbouring ranks, those of one node, so talk most: about activations in every layer (``tp``), then
about shards of parameters (``dp_shard``), copies of gradients (``dp_replicate``) and, least, about
activations between stages (``pp``).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self


class Mesh(NamedTuple):
    """Ranks along each dimension."""

    pp: int
    dp_replicate: int
    dp_shard: int
    tp: int

    @classmethod
    def of_run(cls, params: Mapping[str, Any]) -> Self:
        """The mesh of a run; sizes that are null follow from the others, as benchmark.yaml says.

        With ``ddp`` and independent ranks all data-parallel ranks are copies, with ``fsdp2`` they
        are shards of one copy.
        """
        pp, tp = params["pp"], params["tp"]
        copies, shards = params["dp_replicate"], params["dp_shard"]
        data = params["ranks"] // (pp * tp)
        if shards is None:
            shards = data // (copies or 1) if params["data_parallel"] == "fsdp2" else 1
        return cls(pp, data // shards if copies is None else copies, shards, tp)

    @property
    def data_ranks(self) -> int:
        """Parts into which the ranks divide the samples of a step."""
        return self.dp_replicate * self.dp_shard

    def stage(self, rank: int) -> int:
        """Which stage of the pipeline a rank has."""
        return rank // (self.data_ranks * self.tp)

    def data_rank(self, rank: int) -> int:
        """Which part of the samples a rank computes with: all its pp x tp ranks share them."""
        return rank // self.tp % self.data_ranks
