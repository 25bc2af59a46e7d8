"""Time stamps of training steps in PyTorch: what a rank does in each.

A step is cut wherever something begins or ends: input, forward, backward, optimiser, and inside of
these each wait for other ranks. What lies between two stamps is of whatever was going on, so that
the parts add up to the step. What has no name is the rest of it: a pipeline's schedule, what is
done between micro-steps, and clearing the gradients.

Exposed exchange is what the computation waits for: DDP's wait for its buckets after the last local
gradient, FSDP2's for parameters and gradients, DTensor's for its collectives, and what a stage of a
pipeline takes to hand messages over and to wait for those of its neighbours. What overlaps costs
nothing here. FSDP2's copies between shards and whole tensors are computation.

On a CPU stamps are the host's clock. On a GPU they are events on the stream that computes, which
this stream reaches when it has done what was enqueued before: the host waits for none of them.

The functions of PyTorch that wait are replaced once and for all. Not all of their names are public:
a version of PyTorch without one of them ends with that name, because waiting would count as
computation.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as collectives
from torch.distributed.pipelining import schedules

from harness import spans

INPUT, FORWARD, BACKWARD, OPTIMIZER, REST = "input", "forward", "backward", "optimizer", "rest"
BETWEEN = "between"  # two steps
DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE = "data_parallel", "tensor_parallel", "pipeline_wait"
COMPUTE, WAITS = (FORWARD, BACKWARD, OPTIMIZER), (DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE)
HOST, EVENTS = "hooks and the host's clock", "hooks and events on the GPU's stream"
REDUCED = "activations_reduced_bytes"  # and their gradients, over the tp group
SENT = "activations_sent_bytes"  # and their gradients, to neighbours in the pipeline

Mark = Any  # seconds of the host's clock, or an event of a GPU


class Stamps:
    """The stamps of one rank's steps, and the messages of the newest one.

    `begin` and `end` are called by the loop, `phase` by what computes; waits are heard from what is
    replaced, between `begin` and `end` only. `arrays` returns seconds of each step by name.
    """

    def __init__(self, cuda: Any = None) -> None:
        """Take no stamps yet: a step has to begin. `cuda` is `torch.cuda` on a GPU, whose current
        stream is the one that computes."""
        self._cuda, self._stream = cuda, cuda and cuda.current_stream()
        self._phase, self._waits = BETWEEN, False
        self._marks: list[tuple[Mark, str]] = []  # of this step, and what begins there
        self._step: list[tuple[Mark, str]] = []  # the step before, not read yet
        self._rows: list[dict[str, float]] = []
        self._used: list[Mark] = []  # events to record again
        self._at_end = False  # whether the end of a backward pass waits for others
        self.exchanged = "gradients"
        self.kinds: list[str] = []  # of waits that the layout has
        self.messages: dict[str, list[int]] = {}  # bytes by what they are for

    def begin(self) -> None:
        """Begin a step, which asks for its batch."""
        self.messages = {}
        if not self._marks:
            self._stamp(BETWEEN)
        self._phase = INPUT
        self._stamp(INPUT)

    def phase(self, name: str) -> None:
        """Note what the rank does from now on, besides waiting for others."""
        if BETWEEN != self._phase != name:
            self._phase = name
            self._waits = self._waits and name != REST  # DDP's ends with its backward pass
            if not self._waits:
                self._stamp(name)

    def end(self) -> None:
        """End the step. The one before it is over on a GPU too: its loss was waited for."""
        self._stamp(BETWEEN)
        self._phase = BETWEEN
        self._read()
        self._step, self._marks = self._marks, self._marks[-1:]

    @contextmanager
    def waiting(self, kind: str) -> Iterator[None]:
        """Note that what computes waits for other ranks meanwhile; a wait in a wait is part of
        it, and what a layout has no others for is no wait."""
        if self._phase == BETWEEN or self._waits or kind not in self.kinds:
            yield
            return
        self._waits = True
        self._stamp(kind)
        yield
        self._waits = False
        self._stamp(self._phase)

    def count(self, what: str, tensor: torch.Tensor) -> None:
        """Count a message of a step by the bytes of its tensor."""
        if self._phase != BETWEEN:
            self.messages.setdefault(what, []).append(tensor.nbytes)

    def backward_from(self, root: torch.Tensor) -> None:
        """Have the backward pass from here say when its last local gradient is there, if it then
        waits for others: until the rest of the step."""
        if self._at_end and root.requires_grad:
            root.register_hook(self._starts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return seconds ``[step]`` of the steps since the last call, under their names in
        samples.npz."""
        self._read()
        rows, self._rows = self._rows, []

        def total(*names: str) -> np.ndarray:
            return np.array([sum(row[name] for name in names) for row in rows])

        return {
            "step_times": total("step"),
            "span_input": total(INPUT),
            "span_between": total(BETWEEN),
            "span_compute": total(*COMPUTE),
            "span_communication": total(*WAITS),
            **{f"span_{name}": total(name) for name in (*COMPUTE, *self.kinds)},
        }

    def notes(self, steps: int, stages: int) -> dict[str, Any]:
        """Return what a record notes of spans: `harness.spans.about`, what data-parallel ranks
        exchange, and the stages of the pipeline that ranks are divided into in their order."""
        method = EVENTS if self._cuda else HOST
        return spans.about(method, steps) | {"exchanged": self.exchanged, "stages": stages}

    def _stamp(self, what: str) -> None:
        """Record what begins; on a GPU where the stream that computes is the current one."""
        if not self._cuda:
            self._marks.append((time.perf_counter(), what))
        elif self._cuda.current_stream() == self._stream:
            # Making an event takes longer than recording it again.
            event = self._used.pop() if self._used else self._cuda.Event(enable_timing=True)
            event.record(self._stream)
            self._marks.append((event, what))

    def _read(self) -> None:
        if not self._step:
            return
        row: dict[str, float] = defaultdict(float)
        (end, _), (first, _) = self._step[-1], self._step[1]
        if self._cuda:
            end.synchronize()
        for (mark, what), (until, _) in pairwise(self._step):
            row[what] += self._seconds(mark, until)
        row["step"] = self._seconds(first, end)
        self._used += [mark for mark, _ in self._step[:-1] if self._cuda]
        self._rows.append(row)
        self._step = []

    def _seconds(self, begin: Mark, end: Mark) -> float:
        return float(begin.elapsed_time(end) / 1e3 if self._cuda else end - begin)

    # What a layout waits for.

    def of_ddp(self) -> None:
        """Have the end of each backward pass wait for DDP's buckets."""
        self.kinds.append(DATA_PARALLEL)
        self._at_end = True

    def of_fsdp2(self) -> None:
        """Listen to FSDP2: waits for parameters and for gradients, not what it copies.

        On a GPU it has the stream that computes wait for events of others.
        """
        self.kinds.append(DATA_PARALLEL)
        self.exchanged = "parameters and gradients"
        self._listen(dist.Work, "wait", DATA_PARALLEL)
        if self._cuda:
            wait_event = self._cuda.Stream.wait_event

            def waits(stream: Any, event: Any) -> None:
                with self.waiting(DATA_PARALLEL if stream == self._stream else BETWEEN):
                    wait_event(stream, event)

            self._cuda.Stream.wait_event = waits

    def of_tensor_parallel(self) -> None:
        """Listen to DTensor's sums, and wait for each at once."""
        self.kinds.append(TENSOR_PARALLEL)
        reduce = collectives.all_reduce

        def waits(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            self.count(REDUCED, tensor)
            with self.waiting(TENSOR_PARALLEL):
                reduced: Any = reduce(tensor, *args, **kwargs)
                return reduced.wait() if hasattr(reduced, "wait") else reduced

        collectives.all_reduce = waits

    def of_pipeline(self) -> None:
        """Listen to a pipeline's schedule: to messages that it hands over, and waits for its
        neighbours' activations and gradients."""
        self.kinds.append(PIPELINE)
        hand_over = schedules._batch_p2p

        def waits(operations: list[dist.P2POp], *args: Any, **kwargs: Any) -> list[dist.Work]:
            for operation in operations:
                if operation.op is dist.isend:
                    self.count(SENT, operation.tensor)
            with self.waiting(PIPELINE):
                return hand_over(operations, *args, **kwargs)

        schedules._batch_p2p = waits
        self._listen(schedules, "_wait_batch_p2p", PIPELINE)

    def _listen(self, owner: Any, name: str, kind: str) -> None:
        """Put in the place of a function one that does the same and is a wait of this kind."""
        call = getattr(owner, name)

        def waits(*args: Any, **kwargs: Any) -> Any:
            with self.waiting(kind):
                return call(*args, **kwargs)

        setattr(owner, name, waits)

    def _starts(self, _: torch.Tensor) -> None:
        """A backward pass has begun. Its last local gradient is there when the engine is done with
        the graph: it then calls what was queued, this before DDP's own wait, which is queued with
        the last bucket."""
        torch.autograd.Variable._execution_engine.queue_callback(self._is_ready)

    def _is_ready(self) -> None:
        if self._phase != BETWEEN and not self._waits:
            self._waits = True
            self._stamp(DATA_PARALLEL)
