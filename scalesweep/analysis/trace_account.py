"""Where the time of a step goes in a trace of TensorFlow's profiler: shares of a step, one rank.

A step of our programs is a call of the function ``step``. Its window ends where that call ends and
begins where the one before it ended, so that waiting for input between calls is in it; windows
in which another function or a barrier was called are left out. Of a window count, in
this order, so that what overlaps counts once and hidden communication not at all:

1. computation: at least one operation runs (on GPUs: a kernel that is no collective);
2. communication: else, a collective's kernel or operation;
3. copies: else, a copy from or to a GPU;
4. input: else, the program asks for a batch (``IteratorGetNext``);
5. rest: nothing of these.

What a trace never shows is None, not 0, and is in the rest: Horovod's allreduce is an asynchronous
operation, which the profiler does not record on a CPU; with NCCL its kernels are on the GPU's
streams.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.profile import merged
from scalesweep.analysis.types import Floats
from scalesweep.analysis.xplane import Event, Line

COMPUTATION, COMMUNICATION, COPIES, INPUT, REST = (
    "computation", "communication", "copies", "input", "rest",
)  # fmt: skip
# What each is, in the order in which they count.
PARTS: Mapping[str, str] = {
    COMPUTATION: "Computation: an operation or a kernel runs",
    COMMUNICATION: "Communication that computation does not hide",
    COPIES: "Copies from and to the GPU, not hidden",
    INPUT: "Waiting for input",
    REST: "Rest: nothing that the trace shows",
}
_CALL = "EagerLocalExecute: "
_STEP = re.compile(rf"{_CALL}__inference_step_\d+")
# What is called between two steps that do not follow on each other: an evaluation, a barrier.
_OTHERS = (f"{_CALL}__inference_", f"{_CALL}Horovod")
_BATCH = "IteratorGetNext"
OPERATION = re.compile(r"[^:]+:_?[A-Za-z]\w*")
COLLECTIVE = re.compile(r"nccl|Horovod(Allreduce|Allgather|Broadcast|Reducescatter|Alltoall)"
                         r"|Collective(Reduce|Gather|Bcast)", re.IGNORECASE)  # fmt: skip
COPY = re.compile(r"^memcpy", re.IGNORECASE)
DATA_LINE = "tf_data"  # threads of the input pipeline: what they compute hides nothing
DEVICE, STREAM = "/device:", "Stream"


@dataclass(frozen=True)
class TraceAccount:
    """``shares`` of a step by part, which add up to 1; None for what the trace never shows.

    ``step_s``: mean length of the ``steps`` looked at.
    """

    steps: int
    step_s: float
    shares: Mapping[str, float | None]


def trace_account(lines: Sequence[Line]) -> TraceAccount | None:
    """The account of one rank's trace; None where it shows no two steps after each other."""
    windows = step_windows(lines)
    if not len(windows):
        return None
    on_device = [line for line in lines if line.plane.startswith(DEVICE)]
    streams = [line for line in on_device if line.name.startswith(STREAM)]
    host = [line for line in lines if not line.plane.startswith(DEVICE)]
    busy = streams or [line for line in host if not line.name.startswith(DATA_LINE)]
    kinds: dict[str, list[Event]] = {name: [] for name in PARTS if name != REST}
    for line in busy:
        for event in line.events:
            if kind := _kind(event.name, bool(streams)):
                kinds[kind].append(event)
    kinds[INPUT] = [e for line in host for e in line.events if e.name.startswith(_asks())]
    return account_of(windows, kinds)


def account_of(windows: Floats, kinds: Mapping[str, Sequence[Event]]) -> TraceAccount:
    """The account of windows ``[step, 2]`` from the events of each part, in the order in which the
    parts count."""
    whole = float((windows[:, 1] - windows[:, 0]).sum())
    covered, so_far = 0.0, list[Event]()
    shares: dict[str, float | None] = {}
    for name, events in kinds.items():
        so_far += events
        after = _covered(so_far, windows)
        shares[name] = (after - covered) / whole if _covered(events, windows) else None
        covered = after
    shares[REST] = 1 - covered / whole
    return TraceAccount(len(windows), whole / len(windows), shares)


def _asks() -> tuple[str, ...]:
    """How the names of events begin in which the program asks for a batch, in a graph or not."""
    return (_BATCH, f"{_CALL}{_BATCH}")


def _kind(name: str, kernel: bool) -> str | None:
    """The part that an operation (or kernel) belongs to; None for events that are none."""
    if not kernel:
        if not OPERATION.fullmatch(name) or _BATCH in name:
            return None
        name = name.partition(":")[2]  # of its node and its type
    elif COPY.search(name):
        return COPIES
    return COMMUNICATION if COLLECTIVE.search(name) else COMPUTATION


def step_windows(lines: Iterable[Line]) -> Floats:
    """Begin and end of each step's window, ``[step, 2]``."""
    calls = sorted(
        (event for line in lines for event in line.events if event.name.startswith(_CALL)),
        key=lambda event: event.begin,
    )
    names = {event.name for event in calls if _STEP.fullmatch(event.name)}
    windows = []
    last: float | None = None
    for event in calls:
        if event.name in names and len(names) == 1:
            if last is not None and event.end > last:
                windows.append((last, event.end))
            last = event.end
        elif event.name.startswith(_OTHERS):
            last = None
    return np.array(windows, np.float64).reshape(-1, 2)


def _covered(events: Sequence[Event], windows: Floats) -> float:
    """Seconds within the windows in which at least one of the events is on."""
    if not events:
        return 0.0
    united = merged((event.begin, event.end) for event in events)
    spans = np.array([(begin, end) for begin, end, _ in united])
    # Seconds covered up to each edge, and between edges in proportion.
    so_far = np.cumsum(spans[:, 1] - spans[:, 0])
    covered = np.stack([np.concatenate([[0.0], so_far[:-1]]), so_far], axis=1)
    within = np.interp(windows, spans.reshape(-1), covered.reshape(-1))
    return float((within[:, 1] - within[:, 0]).sum())
