"""Time stamps of training steps in PyTorch: what a rank does in each, without a change to the loop.

A step is cut wherever something begins or ends: input, forward, backward, optimiser, and inside of
these each wait for other ranks. What lies between two stamps is of whatever was going on, so that
the parts add up to the step. What has no name is the rest of it: a pipeline's schedule, what is
done between micro-steps, and between the backward pass and the optimiser.

Exposed exchange is what the computation waits for: DDP's wait for its buckets after the last local
gradient, FSDP2's for parameters and gradients, DTensor's for its collectives, and what a stage of a
pipeline takes to hand messages over and to wait for those of its neighbours. What overlaps costs
nothing here. FSDP2's copies between shards and whole tensors are computation.

On a CPU stamps are the host's clock. On a GPU they are events on the stream that computes, which
this stream reaches when it has done what was enqueued before: the host waits for none of them, and
the times are read when they are over.

Backward passes are seen in `torch.autograd.backward`, waits in `torch.distributed.Work.wait`, which
are replaced once and for all; the optimiser by its hooks. The other names are not public ones: a
version of PyTorch without one of them is refused, because waiting would count as computation.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from harness import spans
from harness.program import EXIT_UNSUPPORTED, ProgramError

INPUT, FORWARD, BACKWARD, OPTIMIZER, REST = "input", "forward", "backward", "optimizer", "rest"
DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE = "data_parallel", "tensor_parallel", "pipeline_wait"
COMPUTE, WAITS = (FORWARD, BACKWARD, OPTIMIZER), (DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE)
HOST, EVENTS = "hooks and the host's clock", "hooks and events on the GPU's stream"
# Methods of FSDP2's groups of parameters that wait, besides what they copy.
_FSDP_WAITS = ("wait_for_unshard", "post_backward", "finalize_backward")

Mark = Any  # an event


class HostTime:
    """What is taken of `torch.cuda`, on a CPU: what was called is done when it returns."""

    @staticmethod
    def current_stream() -> None:
        """Return that there is none."""

    class Event:
        """A moment of the host's clock."""

        def __init__(self, enable_timing: bool) -> None:
            """Be of no moment yet."""

        def record(self, _stream: None) -> None:
            """Be of now."""
            self.at = time.perf_counter()

        def query(self) -> bool:
            """Return that the moment has come."""
            return True

        def synchronize(self) -> None:
            """Wait for nothing."""

        def elapsed_time(self, end: "HostTime.Event") -> float:
            """Return the milliseconds from here to another moment."""
            return 1e3 * (end.at - self.at)


def api_of(device: torch.device) -> Any:
    """Return what times the work of a device."""
    return torch.cuda if device.type == "cuda" else HostTime


class Stamps:
    """The stamps of one rank's steps, and the messages of the newest one.

    `begin`, `fed` and `end` are called by the loop, `doing` by what computes; the rest is heard
    from hooks, between `begin` and `end` only. `arrays` returns seconds of each step by name.
    """

    def __init__(self, api: Any = HostTime) -> None:
        """Take no stamps yet: a step has to begin. `api` is `torch.cuda` on a GPU, whose current
        stream is the one that computes."""
        self._api, self._stream, self._used = api, api.current_stream(), deque[Mark]()
        self._waits: list[str] = []  # that have begun and not ended, the innermost last
        self._phase = REST
        self._nested = False  # a backward pass may take others
        self._marks: list[tuple[Mark, str]] | None = None  # of this step, and what begins there
        self._before: Mark | None = None  # the end of the step before
        self._open: deque[tuple[Mark | None, list[tuple[Mark, str]], Mark]] = deque()
        self._rows: list[dict[str, float]] = []
        self._threads = {threading.get_ident()}
        self._usual = DATA_PARALLEL  # what a wait is that nobody names
        self._named: str | None = None  # what it is now
        self._at_end: str | None = None  # what the end of a backward pass waits for
        self.exchanged = "gradients"
        self.kinds: list[str] = []  # of waits that the layout has
        self.messages: dict[str, list[int]] = {}  # bytes by what they are for

    def count(self, what: str, tensor: torch.Tensor) -> None:
        """Count a message by the bytes of its tensor."""
        self.messages.setdefault(what, []).append(tensor.numel() * tensor.element_size())

    # The loop's own stamps.

    def begin(self) -> None:
        """Begin a step, which asks for its batch."""
        self._phase, self._marks, self.messages = INPUT, [], {}
        self._stamp(INPUT)

    def fed(self) -> None:
        """Note that the step has its batch."""
        self.phase(REST)

    def end(self) -> None:
        """End the step; times of earlier ones are read where they are known."""
        marks, end = self._marks, self._mark()
        if marks is None or end is None:
            raise RuntimeError("a step ends that has not begun, or on another stream")
        self._open.append((self._before, marks, end))
        self._before, self._marks, self._phase = end, None, REST
        while self._open and self._open[0][2].query():
            self._read()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return seconds ``[step]`` of the steps since the last call, under their names in
        samples.npz."""
        while self._open:
            self._open[0][2].synchronize()
            self._read()
        rows, self._rows = self._rows, []

        def total(*names: str) -> np.ndarray:
            return np.array([sum(row.get(name, 0.0) for name in names) for row in rows])

        return {
            "step_times": total("step"),
            "span_input": total(INPUT),
            "span_between": total("between"),
            "span_compute": total(*COMPUTE),
            "span_communication": total(*WAITS),
            **{f"span_{name}": total(name) for name in (*COMPUTE, *self.kinds)},
        }

    def notes(self, steps: int, stages: int = 1) -> dict[str, Any]:
        """Return what a record notes of spans: `harness.spans.about`, what data-parallel ranks
        exchange, and the stages of the pipeline that ranks are divided into in their order."""
        method = HOST if self._api is HostTime else EVENTS
        return spans.about(method, steps) | {"exchanged": self.exchanged, "stages": stages}

    # What the program and its hooks tell.

    @contextmanager
    def doing(self, name: str) -> Iterator[None]:
        """Note what the rank does meanwhile, besides waiting for others."""
        before = self._phase
        self.phase(name)
        try:
            yield
        finally:
            self.phase(before)

    def phase(self, name: str) -> None:
        """Note what the rank does from now on, besides waiting for others."""
        if self._marks is not None and self._phase != name:
            self._phase = name
            if not self._waits:
                self._stamp(name)

    @contextmanager
    def waiting(self, kind: str) -> Iterator[None]:
        """Note that what computes waits for other ranks meanwhile; a wait in a wait is part of
        it, and what a layout has no others for is no wait."""
        others = threading.get_ident() not in self._threads
        if self._marks is None or self._waits or others or kind not in self.kinds:
            yield
            return
        self._stamp(kind)
        self._waits.append(kind)
        try:
            yield
        finally:
            self._waits.pop()
            self._stamp(self._phase)

    def _mark(self) -> Mark | None:
        """Record an event; None where another stream is current, which does not compute."""
        if self._api.current_stream() != self._stream:
            return None
        event = self._used.popleft() if self._used else self._api.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def _stamp(self, what: str) -> None:
        mark = self._mark()
        if mark is not None and self._marks is not None:
            self._marks.append((mark, what))

    def _read(self) -> None:
        before, marks, end = self._open.popleft()
        first, ends = marks[0][0], [*(mark for mark, _ in marks[1:]), end]
        row = {"step": first.elapsed_time(end) / 1e3}
        row["between"] = 0.0 if before is None else before.elapsed_time(first) / 1e3
        for (mark, what), until in zip(marks, ends, strict=True):
            row[what] = row.get(what, 0.0) + mark.elapsed_time(until) / 1e3
        self._rows.append(row)
        # Making an event takes longer than recording it again. The end of a step is the begin of
        # what lies between it and the next.
        self._used += [*(mark for mark, _ in marks), *([before] if before else [])]

    # Hooks.

    def attach(self, optimizer: torch.optim.Optimizer) -> None:
        """Listen to an optimiser, and to all backward passes and waits of the process."""
        optimizer.register_step_pre_hook(lambda *_: self.phase(OPTIMIZER))
        optimizer.register_step_post_hook(lambda *_: self.phase(REST))
        self._replace(torch.autograd, "backward", self._backward)
        self._replace(dist.Work, "wait", lambda wait: self._waits_in(wait, None))

    def of_ddp(self, module: torch.nn.parallel.DistributedDataParallel) -> None:
        """Listen to DDP: its buckets' wait at the end of backward, and its buffers' broadcast."""
        self._kind(DATA_PARALLEL)
        self._at_end = DATA_PARALLEL
        self._replace(module, "_sync_buffers", lambda call: self._waits_in(call, DATA_PARALLEL))

    def of_fsdp2(self) -> None:
        """Listen to FSDP2: waits for parameters and for gradients, not what it copies.

        On a GPU it has the stream that computes wait for events of others.
        """
        self._kind(DATA_PARALLEL)
        self.exchanged = "parameters and gradients"
        from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

        for name in _FSDP_WAITS:
            self._replace(FSDPParamGroup, name, lambda call: self._named_in(call, DATA_PARALLEL))
        if self._api is not HostTime:
            self._replace(self._api.Stream, "wait_event", self._stream_waits)

    def of_tensor_parallel(self) -> None:
        """Listen to DTensor: waits for functional collectives, in eager mode."""
        self._kind(TENSOR_PARALLEL)
        from torch.distributed import _functional_collectives as collectives

        self._replace(collectives, "wait_tensor", lambda c: self._waits_in(c, TENSOR_PARALLEL))

    def of_pipeline(self) -> None:
        """Listen to a pipeline schedule: to messages that it hands over, and waits for its
        neighbours' activations and gradients.

        Waits that nobody else names are a pipeline's then.
        """
        self._kind(PIPELINE)
        self._usual = PIPELINE
        from torch.distributed.pipelining import schedules

        self._replace(schedules, "_batch_p2p", lambda call: self._waits_in(call, PIPELINE))

    def _kind(self, kind: str) -> None:
        if kind not in self.kinds:
            self.kinds.append(kind)

    def _replace(self, owner: Any, name: str, of: Callable[[Any], Any]) -> None:
        """Put `of(what is there)` in its place. Raises ProgramError where there is no such name."""
        if not hasattr(owner, name):
            said = f"PyTorch {torch.__version__} has no {name} of {owner}, by which waits are seen"
            raise ProgramError(EXIT_UNSUPPORTED, said)
        setattr(owner, name, of(getattr(owner, name)))

    def _waits_in(self, call: Any, kind: str | None) -> Any:
        """A function that does as `call`, which waits for other ranks."""

        def waits(*args: Any, **kwargs: Any) -> Any:
            with self.waiting(kind or self._named or self._usual):
                return call(*args, **kwargs)

        return waits

    def _named_in(self, call: Any, kind: str) -> Any:
        """A function that does as `call`, in which waits are of this kind."""

        def named(*args: Any, **kwargs: Any) -> Any:
            before, self._named = self._named, kind
            try:
                return call(*args, **kwargs)
            finally:
                self._named = before

        return named

    def _stream_waits(self, call: Any) -> Any:
        """`Stream.wait_event`: a wait where the stream computes and the wait has a name."""

        def wait_event(stream: Any, event: Any) -> Any:
            if self._named is None or stream != self._stream:
                return call(stream, event)
            with self.waiting(self._named):
                return call(stream, event)

        return wait_event

    def _backward(self, call: Any) -> Any:
        """`torch.autograd.backward`, with its begin, its last local gradient and its end."""

        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._marks is None or self._nested:
                return call(tensors, *args, **kwargs)
            before, self._nested = self._phase, True
            self.phase(BACKWARD)
            roots = [tensors] if isinstance(tensors, torch.Tensor) else tensors
            root = next((each for each in roots if each.requires_grad), None)
            hook = None if root is None else root.register_hook(self._starts)
            try:
                return call(tensors, *args, **kwargs)
            finally:
                if hook is not None:
                    hook.remove()
                self._threads = {threading.get_ident()}
                self._waits.clear()
                self._nested = False
                self.phase(before)

        return backward

    def _starts(self, _: torch.Tensor) -> None:
        """A backward pass has begun, in this thread. Its last local gradient is there when the
        engine is done with the graph: it then calls what was queued, this before DDP's own wait,
        which is queued with the last bucket."""
        self._threads.add(threading.get_ident())
        if self._at_end is not None:
            torch.autograd.Variable._execution_engine.queue_callback(self._is_ready)

    def _is_ready(self) -> None:
        if self._at_end is not None and not self._waits:
            self._waits.append(self._at_end)
            self._stamp(self._at_end)
