"""How data-parallel ranks keep the same weights: not at all, or by DistributedDataParallel.

With DDP each rank has a copy of the network, and gradients are averaged by buckets.
"""

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import nn
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

    def wrapped(self, network: Network) -> nn.Module:
        """Return what exchanges gradients in its backward pass: here the network as it is."""
        return network

    def exchanging(self, module: Any, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step, which exchanges gradients if it is the last."""
        return nullcontext()

    def exchange(self, modules: Sequence[Any]) -> dict[str, Any] | None:
        """Return what the rank exchanges in a step, for the record; None for nothing."""
        return None


@dataclass
class DataParallel(Wrapping):
    """Ranks of a group that average their gradients in the backward pass of the last micro-step.

    Statistics of batch normalisation are each rank's own, as in cnn_training.
    """

    by = "ddp"
    group: dist.ProcessGroup

    def wrapped(self, network: Network) -> nn.Module:
        """Return the network in DDP, which takes the weights of the group's first rank; stamps are
        told of the wait for the last bucket."""
        params = self.params
        own_statistics = {_SYNCHRONISED: False}
        module = DistributedDataParallel(
            network,
            device_ids=[self.device] if self.device.type == "cuda" else None,
            process_group=self.group,
            bucket_cap_mb=params["bucket_cap_mb"],
            gradient_as_bucket_view=params["gradient_as_bucket_view"],
            static_graph=params["static_graph"],
            **own_statistics,
        )
        self.stamps.of_ddp(module)
        return module

    def exchanging(self, module: Any, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step: gradients stay where they are but in the last."""
        return nullcontext() if last else module.no_sync()

    def exchange(self, modules: Sequence[Any]) -> dict[str, Any]:
        """Return the tensors and the buckets of a step, as DDP has formed them."""
        cap = self.params["bucket_cap_mb"]
        parameters = [tensor for module in modules for tensor in module.parameters()]
        buckets = [_buckets(module) for module in modules]
        noted = {
            "by": self.by,
            "tensor_bytes": [tensor.numel() * tensor.element_size() for tensor in parameters],
            "bucket_bytes": (DEFAULT_MB if cap is None else cap) * MIB,
            "cycle_s": None,
            "messages": None if None in buckets else [b for each in buckets for b in each or ()],
            "from": {"bucket_bytes": "PyTorch's default" if cap is None else "bucket_cap_mb"},
        }
        first = {"first_bucket_bytes": dist._DEFAULT_FIRST_BUCKET_BYTES} if cap is None else {}
        return noted | first


def _buckets(module: Any) -> list[int] | None:
    """Return the bytes of each bucket; DDP forms them anew after its first step."""
    facts = module._get_ddp_logging_data()
    sizes = facts.get("rebuilt_bucket_sizes") or facts.get("bucket_sizes")
    return [int(size) for size in sizes.split(",")] if sizes else None
