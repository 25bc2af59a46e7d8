"""Stages of a network on ranks in a row, through which micro-batches go one after another.

Batches of all micro-steps of accumulation go through in one pass, in micro-batches of one size.
Schedules are PyTorch's own (torch.distributed.pipelining).
"""

from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import pipelining

from torch_training import models
from torch_training.models.network import Network
from torch_training.stamps import BACKWARD, FORWARD, REST, Stamps
from torch_training.whole import Batch, Sharing

SCHEDULES = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}


def part(network: Network, stages: int, number: int) -> Network:
    """Return a stage of a network; blocks divide by the stages."""
    share = len(network.blocks) // stages
    blocks = list(network.blocks)[number * share : (number + 1) * share]
    stem = network.stem if number == 0 else None
    cut = Network(stem, blocks, network.head if number == stages - 1 else None)
    cut.checkpointing = network.checkpointing
    return cut


class _Stage(pipelining.PipelineStage):
    """A stage that tells when it computes."""

    stamps: Stamps

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        self.stamps.phase(FORWARD)
        outputs = super().forward_maybe_with_nosync(*args, **kwargs)
        self.stamps.backward_from(outputs)
        self.stamps.phase(REST)
        return outputs

    def backward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        self.stamps.phase(BACKWARD)
        gradients = super().backward_maybe_with_nosync(*args, **kwargs)
        self.stamps.phase(REST)
        return gradients

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        self.stamps.phase(BACKWARD)
        super().perform_reduce_grad(grad_scale_factor)
        self.stamps.phase(REST)


class Pipeline(Sharing):
    """A rank that computes its stage for every micro-batch, and waits for those beside it."""

    def connect(self, number: int, group: dist.ProcessGroup) -> None:
        """Connect the stage of this number with those of the ranks of a group."""
        self.stamps.of_pipeline()
        self.number, self.group, self.last = number, group, number == self.mesh.pp - 1
        device, (taken, given) = self.wrapping.device, self._shapes()
        stage = _Stage(self.module, number, self.mesh.pp, device, taken, given, group=group)
        stage.stamps = self.stamps
        self.schedule = SCHEDULES[self.params["pp_schedule"]](
            stage,
            n_microbatches=micro_batches(self.params) * self.params["accumulation"],
            loss_fn=self._loss,
        )

    def _loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        self.stamps.phase(FORWARD)
        loss = models.loss(outputs, targets)
        self.stamps.phase(REST)
        return loss

    def _shapes(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the stage takes and gives of a micro-batch, without values.

        A stage that had to find out would compute once, in its wrapper, which takes that for a
        micro-step.
        """
        params = self.params
        # What autocast adds to float32, as a block does, is float32.
        mixed = params["precision"] == "mixed_bfloat16" and self.wrapping.by == "fsdp2"
        shape = params["batch_size"] // micro_batches(params), params["sequence"]
        with torch.device("meta"):
            tokens = torch.empty(shape, dtype=torch.int64)
            kind = torch.bfloat16 if mixed else torch.float32
            between = torch.empty((*shape, params["width"]), dtype=kind, requires_grad=True)
            logits = torch.empty((*shape, 1), requires_grad=True)  # stays with its loss
        return tokens if self.number == 0 else between, logits if self.last else between

    def step(self, batch: Batch) -> torch.Tensor:
        """Add the gradients of the mean loss over all micro-batches; return that loss, known to
        the last stage only (elsewhere NaN)."""
        inputs, targets = (torch.cat(each) for each in zip(*batch, strict=True))
        losses: list[torch.Tensor] = []
        self.schedule.step(
            *((inputs,) if self.number == 0 else ()),
            target=targets if self.last else None,
            losses=losses,
            return_outputs=False,
        )
        if self.last:
            return torch.stack([loss.detach() for loss in losses]).mean()
        return torch.full((), torch.nan, device=self.wrapping.device)

    def losses(self, losses: np.ndarray) -> np.ndarray:
        """Return the losses of steps, on every rank those of the last stage of its row."""
        known = torch.tensor(losses, device=self.wrapping.device)
        dist.broadcast(known, group=self.group, group_src=self.mesh.pp - 1)
        return known.cpu().numpy()


def micro_batches(params: dict[str, Any]) -> int:
    """Return into how many parts a pipeline cuts a batch."""
    return params["pp"] if params["micro_batches"] is None else params["micro_batches"]
