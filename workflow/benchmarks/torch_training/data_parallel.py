"""How data-parallel ranks keep the same weights: not at all, as copies (DDP), or in shards (FSDP2).

With DDP each rank has a copy of the network, and gradients are averaged by buckets. With PyTorch's
``fully_shard`` parameters, gradients and the optimiser's state are in shards. Each block of the
network is a group of weights that is gathered before it computes, and whose gradients are summed
and scattered after it; what is outside of blocks is another group. With a mesh of two dimensions
each shard has copies, over which gradients are summed too (hybrid sharding). With
`reshard_after_forward` gathered weights are freed after the forward pass and gathered again in the
backward pass (ZeRO-3), else kept until then (ZeRO-2); those outside of blocks are always kept.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from torch_training.models.network import Network
from torch_training.stamps import Stamps
from torch_training.tensor_parallel import held

GATHERED, SCATTERED = "gathered_bytes", "reduce_scattered_bytes"
MIB = 1 << 20
DEFAULT_MB = 25  # DDP's, whose first bucket is then smaller
_ARGUMENTS = inspect.signature(DistributedDataParallel).parameters
# Whether statistics of rank 0 are sent to all: the argument's name depends on PyTorch's version.
_SYNCHRONISED = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _ARGUMENTS)


@dataclass
class Wrapping:
    """Ranks that exchange no gradients, and what the run asks of them."""

    by: ClassVar[str] = "none"
    params: dict[str, Any]
    device: torch.device
    stamps: Stamps
    mesh: DeviceMesh | None = None  # of data-parallel ranks

    def wrapped(self, network: Network) -> nn.Module:
        """Return what exchanges gradients in its backward pass: here the network as it is."""
        return network

    def exchange_next(self, module: Any, last: bool) -> None:
        """Say whether the next micro-step is the last of its step, which exchanges gradients."""

    def exchange(self, module: Any) -> dict[str, Any] | None:
        """Return what the rank exchanges in a step, for the record; None for nothing."""
        return None


class DataParallel(Wrapping):
    """Ranks of a group that average their gradients in the backward pass of the last micro-step.

    Statistics of batch normalisation are each rank's own, as in cnn_training.
    """

    by = "ddp"

    def wrapped(self, network: Network) -> nn.Module:
        """Return the network in DDP, which takes the weights of the group's first rank."""
        self.stamps.of_ddp()
        own_statistics = {_SYNCHRONISED: False}
        return DistributedDataParallel(
            network,
            device_ids=[self.device] if self.device.type == "cuda" else None,
            process_group=self.mesh and self.mesh.get_group(),
            bucket_cap_mb=self.params["bucket_cap_mb"],
            gradient_as_bucket_view=self.params["gradient_as_bucket_view"],
            **own_statistics,
        )

    def exchange_next(self, module: Any, last: bool) -> None:
        """Have gradients stay where they are but in the last micro-step."""
        module.require_backward_grad_sync = last

    def exchange(self, module: Any) -> dict[str, Any]:
        """Return the tensors and the buckets of a step, as DDP has formed them."""
        cap = self.params["bucket_cap_mb"]
        facts = module._get_ddp_logging_data()  # buckets are formed anew after the first step
        sizes = facts.get("rebuilt_bucket_sizes") or facts.get("bucket_sizes")
        first = {"first_bucket_bytes": dist._DEFAULT_FIRST_BUCKET_BYTES} if cap is None else {}
        return first | {
            "by": self.by,
            "tensor_bytes": [parameter.nbytes for parameter in module.parameters()],
            "bucket_bytes": (DEFAULT_MB if cap is None else cap) * MIB,
            "messages": [int(size) for size in sizes.split(",")] if sizes else None,
            "from": {"bucket_bytes": "PyTorch's default" if cap is None else "bucket_cap_mb"},
        }


class FullyShard(Wrapping):
    """Ranks of a mesh that hold a part of each weight, and gather the others' parts to compute."""

    by = "fsdp2"
    mesh: Any

    def wrapped(self, network: Network) -> nn.Module:
        """Return the network, whose weights are now in shards. FSDP2 copies them for a single rank
        too, which waits for nobody."""
        mixed = self.params["precision"] == "mixed_bfloat16"
        kinds = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if mixed else {}
        within = MixedPrecisionPolicy(**kinds)
        # Blocks and stages hand bfloat16 on; logits are float32, for the loss.
        wide = mixed and network.head is not None
        around = MixedPrecisionPolicy(**kinds, output_dtype=torch.float32 if wide else None)
        # Of a rank's share, where a tp group has divided them.
        self.tensor_bytes = [held(parameter).nbytes for parameter in network.parameters()]
        for block in network.blocks:
            self._shard(block, within, self.params["reshard_after_forward"])
        # Gathered for the forward pass, weights outside of blocks are needed soon after it.
        self._shard(network, around, False)
        if self.mesh.size() > 1:
            self.stamps.of_fsdp2()
        return network

    def _shard(self, module: Any, policy: MixedPrecisionPolicy, reshard: bool) -> None:
        fully_shard(module, mesh=self.mesh, mp_policy=policy, reshard_after_forward=reshard)
        gather = _Counted(self.stamps, GATHERED, dist.all_gather_into_tensor)
        scatter = _Counted(self.stamps, SCATTERED, dist.reduce_scatter_tensor)
        module.set_custom_all_gather(gather)
        module.set_custom_reduce_scatter(scatter)

    def exchange_next(self, module: Any, last: bool) -> None:
        """Have gradients stay whole but in the last micro-step."""
        module.set_requires_gradient_sync(last)

    def exchange(self, module: Any) -> dict[str, Any] | None:
        """Return the gradients of a step, and what the newest one has gathered and scattered; None
        where there is nobody to exchange with."""
        if self.mesh.size() == 1:
            return None
        gathered, scattered = (self.stamps.messages.get(kind, []) for kind in (GATHERED, SCATTERED))
        summed = [size // self.mesh.size(1) for size in scattered if self.mesh.ndim == 2]
        return {
            "by": self.by,
            "tensor_bytes": self.tensor_bytes,
            "messages": [*gathered, *scattered, *summed],
        }


class _Counted:
    """What FSDP2 calls to exchange a group of weights, which counts the whole group."""

    def __init__(self, stamps: Stamps, what: str, call: Callable[..., dist.Work | None]) -> None:
        self.stamps, self.what, self.call = stamps, what, call

    def allocate(self, size: Any, *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, *args: Any, **kwargs: Any
    ) -> dist.Work | None:
        self.stamps.count(self.what, max(output_tensor, input_tensor, key=torch.Tensor.numel))
        return self.call(output_tensor, input_tensor, *args, **kwargs)
