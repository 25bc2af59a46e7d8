"""Errors in what programs print: what the last one of a rank names as the cause of its end.

An error has a weight: one of the rank's own, waiting in vain for others, or having lost them.
Standard library only, for the launcher.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from scalesweep.core.causes import Cause

# The less a text says about why the run ended, the higher.
OWN, WAITED, LOST = range(3)
_LONGEST, _MOST = 2000, 300  # characters of a line that are looked at, and of a text that is told
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ERROR = re.compile(
    r"(?P<kind>(?!nccl)(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Timeout|Interrupt))"
    r"(?:: ?(?P<message>.*))?$"
)
_OF_C = re.compile(r"\s*what\(\):\s+(?P<message>.*)|\[[EF]\S* .*?\] (?P<logged>\[Rank \d+\].*)")
# Processes that started the one which failed, and what is raised in a rank that others end.
_OF_LAUNCHERS = re.compile(
    r"(?:\w+\.)*(?:ChildFailedError|CalledProcessError|ProcessRaisedException|SignalException"
    r"|KeyboardInterrupt)\b|RuntimeError: Horovod detected that one or more processes"
)
_WATCHDOG = re.compile(r".*watchdog thread terminated with exception: ")
_OF_TORCH = r"^[\w.]*(?:Runtime|Timeout|Dist\w*)Error: "
_OF_TF = r"^[\w.]*ResourceExhaustedError: .*OOM when allocating tensor.*device:"
_PEER = (
    rf"{_OF_TORCH}.*(?:Connection (?:closed|reset) by|[Bb]roken pipe|closed by remote peer"
    r"|got 0 bytes|remote process exited|received errors|recv(?:Value)? failed"
    r"|Horovod has been shut down|communicator was aborted)"
)
# Cause, weight, and what messages begin with, or kinds (with "^"). The first that fits counts.
_PATTERNS = tuple(
    (re.compile(text[1:] if text[0] == "^" else rf"\S+: (?:{text})"), cause, weight)
    for cause, weight, *texts in (
        (
            Cause.GPU_OUT_OF_MEMORY, OWN, rf"{_OF_TF}GPU",
            r"(?:CUDA|HIP|XPU) out of memory|(?:CUDA|HIP) error: out of memory",
            r"(?:CUDA error: )?CU[A-Z]+_STATUS_ALLOC_FAILED|std::bad_alloc: .*CUDA error",
            r"NCCL error.*(?:'out of memory'|CUDA calloc)",
        ),
        (
            Cause.OUT_OF_MEMORY, OWN, rf"{_OF_TF}CPU", r"^[\w.]*MemoryError\b", "std::bad_alloc$",
            r"(?:\[enforce fail at [^\]]*\] [^:]*)?DefaultCPUAllocator: (?:can't|not enough)",
            r"\[Errno 12\] Cannot allocate memory",
        ),
        (Cause.GPU_FAULT, OWN, r"(?:NCCL error.*)?CUDA error: (?:an )?uncorrectable"),
        (
            Cause.KILLED, OWN, r"DataLoader worker \(pid \d+\) is killed by",
            r"process \d+ terminated with signal",
        ),
        (
            Cause.LAUNCH_FAILED, OWN,
            r"The server socket has failed to .*(?:EADDRINUSE|[Aa]ddress already in use)",
        ),
        (
            Cause.LAUNCH_FAILED, WAITED, r"^[\w.]*Rendezvous(?:Timeout|Connection)Error",
            r"Timed out after \d+ seconds waiting for (?:clients|workers)",
            r"The client socket has (?:timed out after|failed to connect to any)",
        ),
        (
            Cause.EXCHANGE_TIMEOUT, WAITED,
            rf"{_OF_TORCH}.*(?:Watchdog caught collective operation timeout|Timed out waiting \d+ms"
            r" for|failed to pass monitoredBarrier|Socket Timeout|wait timeout after \d+ms)",
        ),
        (None, LOST, _PEER, r"^[\w.]*(?:Connection\w*|BrokenPipe|HorovodInternal)Error\b"),
        (
            Cause.EXCHANGE_FAILED, WAITED, r"NCCL error.*unhandled system error|.*connectFullMesh",
            r"NCCL error.*internal error", r"\[[^\]]*gloo[^\]]*\] (?:Read|Write) error",
        ),
        (None, WAITED, "NCCL error.*unhandled cuda error"),
    )
    for text in texts
)  # fmt: skip


class Reason(NamedTuple):
    """An error that ended a rank: its cause, None if its text names none; its weight."""

    cause: Cause | None
    weight: int
    text: str


def reason_of(lines: Sequence[str], of_one_rank: bool) -> Reason | None:
    """Why whoever printed these lines ended, by the last error; None without one.

    Of several ranks nobody knows whose error came first: the last of those with the least weight.
    """
    reasons: list[Reason] = []
    after_last = False
    for raw in lines:
        line = _COLOURS.sub("", raw[:_LONGEST]).strip("\0\r\n")
        if after_last and reasons:  # NCCL's own words below the exception
            reasons[-1] = _classified(f"{reasons[-1].text} Last error: {line.strip()}")
        after_last = line.strip() == "Last error:"
        of_c = _OF_C.match(line)
        error = f"RuntimeError: {of_c['message'] or of_c['logged']}" if of_c else line
        if (of_c or _ERROR.match(line)) and not _OF_LAUNCHERS.match(error):
            reasons.append(_classified(error))
    if of_one_rank:
        return reasons[-1] if reasons else None
    return min(reversed(reasons), key=lambda reason: reason.weight, default=None)


def _classified(error: str) -> Reason:
    """What an error says (``Kind: message``)."""
    kind, sep, message = error.partition(": ")
    plain = f"{kind}{sep}{_WATCHDOG.sub('', message)}"
    text = " ".join(error.split())
    text = text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
    for pattern, cause, weight in _PATTERNS:
        if pattern.match(plain):
            return Reason(cause, weight, text)
    return Reason(None, OWN, text)
