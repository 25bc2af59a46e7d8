"""DistributedDataParallel: a copy of the network on every rank, gradients averaged by buckets."""

import inspect
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torch_training.models.network import Network
from torch_training.sharing import Sharing
from torch_training.stamps import Stamps

MIB = 1 << 20
DEFAULT_MB = 25  # DDP's, whose first bucket is then smaller
_ARGUMENTS = inspect.signature(DistributedDataParallel).parameters
# Whether statistics of rank 0 are sent to all: the argument's name depends on PyTorch's version.
_SYNCHRONISED = next(n for n in ("forward_sync_buffers", "broadcast_buffers") if n in _ARGUMENTS)


class DataParallel(Sharing):
    """Ranks that average their gradients in the backward pass of the last micro-step.

    Statistics of batch normalisation are each rank's own, as in cnn_training.
    """

    by = "ddp"

    def wrapped(self, network: Network) -> nn.Module:
        """Return the network in DDP, which takes the weights of rank 0."""
        params = self.params
        own_statistics = {_SYNCHRONISED: False}
        self.ddp = DistributedDataParallel(
            network,
            device_ids=[self.device] if self.device.type == "cuda" else None,
            bucket_cap_mb=params["bucket_cap_mb"],
            gradient_as_bucket_view=params["gradient_as_bucket_view"],
            static_graph=params["static_graph"],
            **own_statistics,
        )
        return self.ddp

    def attach(self, stamps: Stamps) -> None:
        """Have the stamps listen to the wait for the last buckets."""
        stamps.of_ddp(self.ddp)

    def exchanging(self, last: bool) -> AbstractContextManager[Any]:
        """Return the context of a micro-step: gradients stay where they are but in the last."""
        return nullcontext() if last else self.ddp.no_sync()

    def exchange(self) -> dict[str, Any]:
        """Return the tensors and the buckets of a step, as DDP has formed them."""
        cap = self.params["bucket_cap_mb"]
        noted = {
            "by": self.by,
            "tensor_bytes": [p.numel() * p.element_size() for p in self.parameters()],
            "bucket_bytes": (DEFAULT_MB if cap is None else cap) * MIB,
            "cycle_s": None,
            "messages": self._buckets(),
            "from": {"bucket_bytes": "PyTorch's default" if cap is None else "bucket_cap_mb"},
        }
        first = {"first_bucket_bytes": dist._DEFAULT_FIRST_BUCKET_BYTES} if cap is None else {}
        return noted | first

    def _buckets(self) -> list[int] | None:
        """Return the bytes of each bucket; DDP forms them anew after its first step."""
        facts = self.ddp._get_ddp_logging_data()
        sizes = facts.get("rebuilt_bucket_sizes") or facts.get("bucket_sizes")
        return [int(size) for size in sizes.split(",")] if sizes else None
