"""Parameters, gradients and the optimiser's state in shards: PyTorch's ``fully_shard`` (FSDP2).

Each block of the network is a group of weights that is gathered before it computes, and whose
gradients are summed and scattered after it; what is outside of blocks is another group. With a mesh
of two dimensions each shard has copies, over which gradients are summed too (hybrid sharding). With
`reshard_after_forward` gathered weights are freed after the forward pass and gathered again in the
backward pass (ZeRO-3), else kept until then (ZeRO-2); those outside of blocks are always kept.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from torch_training.data_parallel import Wrapping
from torch_training.models.network import Network
from torch_training.stamps import DATA_PARALLEL

GATHERED, SCATTERED, REDUCED = "gathered_bytes", "reduce_scattered_bytes", "all_reduced_bytes"
KINDS = (GATHERED, SCATTERED, REDUCED)


@dataclass
class FullyShard(Wrapping):
    """Ranks of a mesh that hold a part of each weight, and gather the others' parts to compute.

    With `alone` nothing is exchanged, and a rank takes its own shard for all of them: it copies and
    computes as much.
    """

    by = "fsdp2"
    mesh: DeviceMesh
    alone: bool = False

    def wrapped(self, network: Network) -> nn.Module:
        """Return the network, whose weights are now in shards; stamps are told of the waits for
        weights and gradients. FSDP2 copies them for a single rank too, which waits for nobody."""
        mixed = self.params["precision"] == "mixed_bfloat16"
        kinds = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if mixed else {}
        within = MixedPrecisionPolicy(**kinds)
        # Blocks and stages hand bfloat16 on; logits are float32, for the loss.
        wide = mixed and network.head is not None
        around = MixedPrecisionPolicy(**kinds, output_dtype=torch.float32 if wide else None)
        reshard = self.params["reshard_after_forward"]
        for block in network.blocks:
            self._shard(block, within, reshard)
        # Gathered for the forward pass, weights outside of blocks are needed soon after it.
        self._shard(network, around, False)
        if self.mesh.size() > 1 and not self.alone:
            self.stamps.of_fsdp2()
        return network

    def _shard(self, module: Any, policy: MixedPrecisionPolicy, reshard: bool) -> None:
        fully_shard(module, mesh=self.mesh, mp_policy=policy, reshard_after_forward=reshard)
        module.set_custom_all_gather(_Comm(self._gather))
        module.set_custom_reduce_scatter(_Comm(self._scatter))

    def _gather(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        if self.alone:
            for number, part in enumerate(output_tensor.view(group.size(), -1)):
                if number != group.rank():  # where it is already
                    part.copy_(input_tensor.view(-1))
            return None
        self.stamps.count(GATHERED, output_tensor)
        with self.stamps.waiting(DATA_PARALLEL):
            return dist.all_gather_into_tensor(output_tensor, input_tensor, group, async_op)

    def _scatter(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        if self.alone:
            output_tensor.copy_(input_tensor.view(group.size(), -1)[group.rank()])
            return None
        self.stamps.count(SCATTERED, input_tensor)
        if self.mesh.ndim == 2:  # copies
            self.stamps.count(REDUCED, output_tensor)
        with self.stamps.waiting(DATA_PARALLEL):
            return dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group, async_op)

    def exchanging(self, module: Any, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step: gradients stay whole but in the last."""
        module.set_requires_gradient_sync(last)
        return nullcontext()

    def exchange(self, modules: Sequence[Any]) -> dict[str, Any] | None:
        """Return the gradients of a step, and what the newest one has gathered and scattered; None
        where there is nobody to exchange with."""
        if self.mesh.size() == 1 or self.alone:
            return None
        sent = {what: self.stamps.messages.get(what, []) for what in KINDS}
        parameters = [tensor for module in modules for tensor in module.parameters()]
        return {
            "by": self.by,
            "tensor_bytes": [_share(tensor) * tensor.element_size() for tensor in parameters],
            "bucket_bytes": None,
            "cycle_s": None,
            "messages": [size for sizes in sent.values() for size in sizes],
            **{what: sum(sizes) for what, sizes in sent.items()},
            "from": {"messages": "counted in a step"},
        }


def _share(parameter: Any) -> int:
    """Return how many values of a weight a rank exchanges with data-parallel ranks: those of its
    share, where a tp group has divided it before. The weight itself counts those of all ranks."""
    names, sizes = parameter.device_mesh.mesh_dim_names, parameter.device_mesh.shape
    placed = zip(names, sizes, parameter.placements, strict=True)
    ranks = math.prod(size for name, size, place in placed if name == "tp" and place.is_shard())
    return int(parameter.numel()) // ranks


class _Comm:
    """What FSDP2 calls to exchange a group of weights: allocates what comes of it, and calls."""

    def __init__(self, call: Callable[..., dist.Work | None]) -> None:
        self.call = call

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, *args: Any, **kwargs: Any) -> dist.Work | None:
        return self.call(*args, **kwargs)
