"""Probes in PyTorch, whose ranks are torch.distributed's."""

from typing import ClassVar

import torch

from harness import ranks, torch_ranks
from harness.probe import SweepProbe


class Probe(SweepProbe):
    """A probe whose calls are PyTorch's, on a GPU of each rank's own where there are any."""

    lacking: ClassVar[tuple[type[Exception], ...]] = (NotImplementedError,)

    def start(self) -> None:
        """Start the ranks as training does."""
        ranks.start(self.params["ranks"], *self.threads())


def wait() -> None:
    """Wait until what this rank's GPU was given is computed; a CPU's calls return when it is."""
    if (device := torch_ranks.device()).type == "cuda":
        torch.cuda.synchronize(device)
