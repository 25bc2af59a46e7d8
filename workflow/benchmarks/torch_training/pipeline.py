"""Stages of a network on ranks in a row, through which micro-batches go one after another.

Each rank has one stage, or `virtual_stages` of them that are as far apart as the ranks are many.
Batches of all micro-steps of accumulation go through in one pass, in micro-batches of one size.
Schedules are PyTorch's own (torch.distributed.pipelining).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import pipelining
from torch.distributed.pipelining import PipelineStage

from torch_training import mesh, models
from torch_training.models.network import Network
from torch_training.stamps import BACKWARD, FORWARD, Stamps
from torch_training.whole import Batch, Sharing

SENT = "activations_sent_bytes"  # and their gradients, to neighbours
SCHEDULES = {
    "gpipe": pipelining.ScheduleGPipe,
    "1f1b": pipelining.Schedule1F1B,
    "interleaved": pipelining.ScheduleInterleaved1F1B,
}


def parts(network: Network, stages: int, numbers: Sequence[int]) -> list[Network]:
    """Return stages of a network by their numbers; blocks divide by the stages."""
    share = len(network.blocks) // stages
    cut = []
    for number in numbers:
        blocks = list(network.blocks)[number * share : (number + 1) * share]
        stem = network.stem if number == 0 else None
        part = Network(stem, blocks, network.head if number == stages - 1 else None)
        part.checkpointing = network.checkpointing
        cut.append(part)
    return cut


class _Stage(PipelineStage):
    """A stage that counts what it sends, and tells when it computes."""

    stamps: Stamps

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        with self.stamps.doing(FORWARD):
            return super().forward_maybe_with_nosync(*args, **kwargs)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        with self.stamps.doing(BACKWARD):
            super().perform_reduce_grad(grad_scale_factor)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        return self._counted(super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        return self._counted(super().get_bwd_send_ops(bwd_chunk_id))

    def _counted(self, operations: list[dist.P2POp]) -> list[dist.P2POp]:
        for operation in operations:
            self.stamps.count(SENT, operation.tensor)
        return operations


class Pipeline(Sharing):
    """A rank that computes its stages for every micro-batch, and waits for those beside it."""

    def connect(self, group: dist.ProcessGroup) -> None:
        """Connect the stages of the ranks of a group, which are in a row; stamps are told of what
        this rank waits for of its neighbours."""
        self.stamps.of_pipeline()
        params, self.group = self.params, group
        numbers = mesh.stages_of(self.position, self.shape, params["virtual_stages"])
        count = self.shape.pp * params["virtual_stages"]
        stages = []
        for number, module in zip(numbers, self.modules, strict=True):
            taken, given = self._shapes(number == 0, number == count - 1)
            device = self.wrapping.device
            stages.append(_Stage(module, number, count, device, taken, given, group=group))
            stages[-1].stamps = self.stamps
        self.schedule = SCHEDULES[params["pp_schedule"]](
            stages if params["pp_schedule"] == "interleaved" else stages[0],
            n_microbatches=micro_batches(params) * params["accumulation"],
            loss_fn=self._loss,
        )

    def _loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with self.stamps.doing(FORWARD):
            return models.loss(outputs, targets)

    def _shapes(self, first: bool, last: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what a stage takes and gives of a micro-batch, without values.

        A stage that had to find out would compute once, in its wrapper, which takes that for a
        micro-step.
        """
        params = self.params
        count = params["batch_size"] // micro_batches(params)
        with torch.device("meta"):
            inputs, targets = models.example(params)
            inputs = inputs.new_empty((count, *inputs.shape[1:]))
            places = targets.shape[1:]  # a sample's: those of its tokens, or none
            mixed = params["precision"] == "mixed_bfloat16"
            # What autocast adds to float32, as a block of the transformer does, is float32.
            narrow = mixed and (self.wrapping.by == "fsdp2" or params["model"] != "transformer")
            between = torch.empty(
                (count, *places, params["width"]),
                dtype=torch.bfloat16 if narrow else torch.float32,
                requires_grad=True,
            )
            outputs = torch.empty((count, *places, 1), requires_grad=True)  # stays with its loss
        return inputs if first else between, outputs if last else between

    def step(self, batch: Batch) -> torch.Tensor:
        """Add the gradients of the mean loss over all micro-batches; return that loss, known to
        the last stage only (elsewhere NaN)."""
        inputs, targets = (_joined(each) for each in zip(*batch, strict=True))
        first, last = self.position.pp == 0, self.position.pp == self.shape.pp - 1
        losses: list[torch.Tensor] = []
        self.schedule.step(
            *((inputs,) if first else ()),
            target=targets if last else None,
            losses=losses,
            return_outputs=False,
        )
        if last:
            return torch.stack([loss.detach() for loss in losses]).mean()
        return torch.full((), torch.nan, device=self.wrapping.device)

    def losses(self, losses: np.ndarray) -> np.ndarray:
        """Return the losses of steps, on every rank those of the last stage of its row."""
        known = torch.tensor(losses, device=self.wrapping.device)
        last = dist.get_global_rank(self.group, self.shape.pp - 1)
        dist.broadcast(known, src=last, group=self.group)
        return known.cpu().numpy()

    def sent(self) -> dict[str, list[int]]:
        """Return the messages of the newest step besides those of data-parallel ranks."""
        return super().sent() | {"pp": self.stamps.messages.get(SENT, [])}


def micro_batches(params: dict[str, Any]) -> int:
    """Return into how many parts a pipeline cuts a batch."""
    return params["pp"] if params["micro_batches"] is None else params["micro_batches"]


def _joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))
