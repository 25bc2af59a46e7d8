"""How data-parallel ranks keep the same weights: not at all, or by DistributedDataParallel.

With DDP each rank has a copy of the network, and gradients are averaged by buckets.
"""

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.parallel import DistributedDataParallel

from torch_training.models.network import Network
from torch_training.stamps import Stamps

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
