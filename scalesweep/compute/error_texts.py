"""Why a program ended, by what its ranks printed last: errors of PyTorch, NCCL, Gloo, NumPy, C++.

A rank that dies often takes others with it, whose words are of its end ("Connection closed by
peer"), or of having waited for it. So each error has a weight: an error of the rank's own, waiting
that was given up, a peer that was lost. Only errors that nothing else follows count: a program that
logs one and goes on did not end of it. Standard library only, for the launcher.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scalesweep.core.causes import Cause

# The less a text says about why the run ended, the higher.
OWN, WAITED, LOST = range(3)
_MOST = 300  # characters of a text
_LONGEST = 2000  # characters of a line that are looked at

_START = re.compile(r"(?:Original )?Traceback \(most recent call last\):$")
# As Rich prints it: in a box, and the last line broken at the width of a terminal.
_BOXED = re.compile(r"\u256d\u2500+ (?:\S+ )?Traceback \(most recent call last\) \u2500+\u256e$")
_OF_BOX = ("\u2502", "\u2570", "\u256d")
_BROKEN_LINES = 12
_CHAINED = re.compile(
    r"(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$"
)
_FINAL = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*)|:)?$")
_THREAD = re.compile(r"Exception (?:in thread|ignored in)\b")
_TERMINATE = re.compile(r"terminate called after throwing an instance of '")
_WHAT = re.compile(r"\s*what\(\):\s+(?P<message>.*)")
_WATCHDOG = re.compile(
    r"(?:\[[^\]]*\] ?)*(?:NCCL|Process group) watchdog thread terminated with exception: "
)
# C++'s log lines that say something; the tracebacks behind them may be of other threads.
_LOGGED = re.compile(
    r"(?:\[[EF][^\]]*\] )(?P<message>\[Rank \d+\]:? (?:Watchdog caught collective operation timeout"
    r"|Ranks? [\d, ]+ failed to pass monitoredBarrier).*)"
)
# Processes that started the one which failed, and what is raised in a rank that others end.
_OF_LAUNCHERS = re.compile(
    r"(?:\w+\.)*(?:ChildFailedError|CalledProcessError|ProcessRaisedException|SignalException"
    r"|KeyboardInterrupt|SystemExit)$"
)
_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# A progress bar of tqdm, after which others print in the same line. It is drawn once more at the
# end; one that is drawn more often belongs to a program that goes on.
_BAR = re.compile(r"[^|]{0,80}\d%\|[^|]*\|[^\[]*\[[^\]]*\]")
_MOST_BARS = 2
# What follows an error and is no sign of a program that goes on. No two parts match the same text.
_AFTER = re.compile(
    r"\s"  # indented: frames, code
    r"|\[[EWIF]\d*[ \]]|[EWIF]\d{4} \d\d:|(?:WARNING|ERROR|INFO):torch\."
    r"|\[\d{4}-\d\d-\d\d[ \d:,]*\] torch\.distributed"
    r"|terminate called|Fatal Python error|Thread 0x|Current thread 0x|Extension modules:"
    r"|Aborted|Killed|Terminated|Segmentation fault|Bus error"
    r"|CUDA kernel errors might|For debugging consider|Compile with `TORCH|Search for `cuda"
    r"|Device-side assertions|C\+\+ CapturedTraceback|Exception raised from|frame #|#\d+ "
    r"|ERROR: Unexpected bus error|\S+\.cuh?:\d+: |Original exception:|\[[^\]]*gloo[^\]]*\] "
    r"|<omitting python frames>|This may indicate|Process Group destroyed"
    r"|Set TORCH|You can suppress|from user code|-- Process \d+ terminated"
    r"|\[[\d-]{10} [\d:,]{8,12}\] \[\w+\] \[launch\.py:|Set the environment variable HYDRA_FULL"
    r"|\S+ FAILED$|Failures:$|Root Cause \(first observed failure\):$|\[\d+\]:$"
    r"|wandb: |\S+ NCCL (?:INFO|WARN)|\S*:\d+: \w*Warning: |\*{5,}$|-{5,}$|={5,}$"
)

_OF_NCCL = re.compile(r"nccl\w+: |Last error:")
# Rich leaves the module out.
_OF_TORCH = (
    r"(?:RuntimeError|TimeoutError|(?:torch\.(?:\w+\.)*)?(?:OutOfMemory|Accelerator|Dist\w*)Error)"
)
_OF_MEMORY = r"(?:[\w.]*\.)?(?:_Array)?MemoryError"
# Of PyTorch and of NCCL: the same words come from exceptions and from C++.
_PEER = (
    r"Connection (?:closed|reset) by|[Bb]roken pipe|closed by remote peer|got 0 bytes"
    r"|remote process exited|monitoredBarrier, but received errors|recv(?:Value)? failed"
    r"|Horovod has been shut down|NCCL communicator was aborted on rank \d+\.?$"
)


class _Pattern(NamedTuple):
    """What an error is, by its kind and the beginning of its message."""

    kind: re.Pattern[str]
    message: re.Pattern[str]
    cause: Cause | None
    weight: int


def _pattern(kind: str, message: str, cause: Cause | None, weight: int = OWN) -> _Pattern:
    return _Pattern(re.compile(rf"(?:{kind})$"), re.compile(message), cause, weight)


# The first that fits counts.
_PATTERNS = (
    _pattern(
        _OF_TORCH,
        r"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate|(?:CUDA|HIP) error: out of memory"
        r"|cuda runtime error \(2\)|(?:CUDA error: )?CU[A-Z]+_STATUS_ALLOC_FAILED"
        r"|NCCL error.*Cuda failure (?:\d+ )?'out of memory'|NCCL error.*Failed to CUDA calloc"
        r"|(?:std::bad_alloc: |parallel_for failed: ).*(?:cudaErrorMemoryAllocation|out of memory)",
        Cause.GPU_OUT_OF_MEMORY,
    ),
    _pattern(r"cupy\.[\w.]*OutOfMemoryError", "Out of memory", Cause.GPU_OUT_OF_MEMORY),
    _pattern(
        _OF_MEMORY, r"std::bad_alloc: .*(?:CUDA error|RMM failure)", Cause.GPU_OUT_OF_MEMORY
    ),
    _pattern(
        r"[\w.]*ResourceExhaustedError", r".*OOM when allocating tensor.*device:GPU:\d",
        Cause.GPU_OUT_OF_MEMORY,
    ),
    _pattern(
        r"[\w.]*ResourceExhaustedError", r".*OOM when allocating tensor.*device:CPU:\d",
        Cause.OUT_OF_MEMORY,
    ),
    _pattern(_OF_MEMORY, "", Cause.OUT_OF_MEMORY),
    _pattern(
        _OF_TORCH,
        r"(?:\[enforce fail at [^\]]*\] [^:]*)?DefaultCPUAllocator: (?:can't allocate|not enough)"
        r" memory|\$ Torch: not enough memory|std::bad_alloc$"
        r"|unable to mmap .*Cannot allocate memory",
        Cause.OUT_OF_MEMORY,
    ),
    _pattern("OSError", r"\[Errno 12\] Cannot allocate memory", Cause.OUT_OF_MEMORY),
    _pattern(
        _OF_TORCH,
        r"(?:NCCL error.*)?(?:CUDA error: (?:an )?uncorrectable|cuda runtime error \(39\))",
        Cause.GPU_FAULT,
    ),
    _pattern(
        "RuntimeError",
        r"DataLoader worker \(pid \d+\) is killed by signal: ",
        Cause.KILLED,
    ),
    _pattern(r"[\w.]*ProcessExitedException", r"process \d+ terminated with signal", Cause.KILLED),
    _pattern(
        _OF_TORCH,
        r"The server socket has failed to .*(?:EADDRINUSE|Address already in use)"
        r"|Address already in use$",
        Cause.LAUNCH_FAILED,
    ),
    _pattern(
        _OF_TORCH,
        r"Timed out after \d+ seconds waiting for (?:clients|workers)"
        r"|The client socket has (?:timed out after|failed to connect to any)",
        Cause.LAUNCH_FAILED, WAITED,
    ),
    _pattern(
        r"torch\.[\w.]*Rendezvous(?:Timeout|Connection)Error", "", Cause.LAUNCH_FAILED, WAITED
    ),
    _pattern(
        _OF_TORCH,
        r".*Watchdog caught collective operation timeout"
        r"|\[[^\]]*gloo[^\]]*\] Timed out waiting \d+ms for|.*Ranks? [\d, ]+ failed to pass"
        r" monitoredBarrier|(?:.*store->get\('\d+'\) got error: )?(?:Socket Timeout"
        r"|wait timeout after \d+ms)",
        Cause.EXCHANGE_TIMEOUT, WAITED,
    ),
    _pattern(_OF_TORCH, f".*(?:{_PEER})", None, LOST),
    _pattern(r"(?:[\w.]*\.)?(?:Connection\w*|BrokenPipe|HorovodInternal)Error", "", None, LOST),
    _pattern(
        _OF_TORCH, r"NCCL error.*(?:unhandled system error|internal error)|.*connectFullMesh failed"
        r"|\[[^\]]*gloo[^\]]*\] (?:Read|Write) error",
        Cause.EXCHANGE_FAILED, WAITED,
    ),
    _pattern(_OF_TORCH, "NCCL error.*unhandled cuda error", None, WAITED),
)  # fmt: skip


class Reason(NamedTuple):
    """An error that ended a rank: its cause, None where its text says no more than that it failed;
    ``weight``: ``OWN`` error, ``WAITED`` in vain, ``LOST`` a peer."""

    cause: Cause | None
    weight: int
    text: str


class Printed(NamedTuple):
    """A line without labels; ``marked``: PyTorch says that it is of what ended the rank."""

    text: str
    marked: bool = False


def reason_of(lines: Iterable[Printed], of_one_rank: bool) -> Reason | None:
    """Why whoever printed these lines ended; None where they do not end with errors.

    Of one rank the first of its own errors counts. Of several, who was first is not known: errors
    of their own that differ say nothing of the cause.
    """
    errors = _Errors()
    reason = _first(errors.read(lines), of_one_rank)
    if reason and reason.weight != OWN and errors.survived:
        # It may have hung, and others with it, because of what it went on after.
        return reason._replace(cause=None)
    return reason


def _first(reasons: Sequence[Reason], of_one_rank: bool) -> Reason | None:
    if not reasons:
        return None
    least = min(reason.weight for reason in reasons)
    alike = [reason for reason in reasons if reason.weight == least]
    if of_one_rank or len({reason.cause for reason in alike}) == 1:
        return alike[0]
    return Reason(None, least, alike[0].text)


def classified(kind: str, message: str, rest: str = "") -> Reason:
    """What an error says; ``rest``: the lines of its message after the first."""
    shown = f"{kind}: {message}" if message else kind
    message = _WATCHDOG.sub("", message)
    whole = f"{message} {rest}" if message.startswith("NCCL error") else message
    for pattern in _PATTERNS:
        if pattern.kind.match(kind) and pattern.message.match(whole):
            return Reason(pattern.cause, pattern.weight, _shown(shown, whole))
    return Reason(None, OWN, _shown(shown, whole))


def _shown(text: str, whole: str) -> str:
    """The text for people: of NCCL with its last error, which says most."""
    _, sep, last = whole.partition("Last error:")
    text = " ".join((f"{text}: {last.strip()}" if sep else text).split())
    return text if len(text) <= _MOST else text[: _MOST - 3] + "..."


class _Errors:
    """Finds the errors that nothing else follows."""

    def __init__(self) -> None:
        # Whether anything of a known cause was forgotten.
        self.survived = False
        self._begin()

    def _forget(self) -> None:
        """Begin anew: the program has printed something else since."""
        self._close()
        self.survived |= any(why.cause and why.weight == OWN for why in self.reasons)
        self._begin()

    def _begin(self) -> None:
        self.reasons: list[Reason] = []
        # Of a chain of exceptions that is still open, the ones before; and of a thread's.
        self._chain: list[Reason] = []
        self._since = 0  # where in it the one begins that was not handled
        self._chained = self._of_thread = False
        self._bars = 0
        # In a traceback before its last line, and in how many others that began meanwhile, line by
        # line among those of this one; behind it, kind, message and what follows.
        self._inside = self._boxed = False
        self._mixed = self._broken = 0
        self._last: tuple[str, str, list[str]] | None = None

    def read(self, lines: Iterable[Printed]) -> list[Reason]:
        """The errors at the end of these lines, in their order."""
        for line in lines:
            # Cut: no pattern may search a line without an end.
            text = _COLOURS.sub("", line.text[:_LONGEST].replace("\0", "")).rstrip()
            if bar := _BAR.match(text):
                text = text[bar.end() :]
                self._bars += 1
                if self._bars > _MOST_BARS:
                    self._forget()
            if not text:
                continue
            if self._inside:
                self._in_traceback(text)
            else:
                self._outside(text, line.marked)
        self._close()
        return self.reasons

    def _in_traceback(self, text: str) -> None:
        if _START.match(text):
            self._mixed += 1
        if text[0].isspace() or text.startswith(_OF_BOX) or _START.match(text):
            return
        self._inside = False
        self._broken = _BROKEN_LINES if self._boxed else 0
        if match := _FINAL.match(text):
            self._last = match["kind"], match["message"] or "", []
        else:
            self._forget()

    def _outside(self, text: str, marked: bool) -> None:
        if self._begins(text):
            return
        if self._last is not None and (_OF_NCCL.match(text) or self._continues()):
            self._last[2].append(text)
        elif self._mixed and (match := _FINAL.match(text)) and match["kind"].endswith("Error"):
            mixed = self._mixed - 1
            self._close()
            self._last = match["kind"], match["message"] or "", []
            self._mixed = mixed
        elif self._broken:
            self._broken -= 1
        elif not (_AFTER.match(text) or (self._last and marked)):
            self._forget()

    def _begins(self, text: str) -> bool:
        """Take a line with which an error begins, or the next one of a chain."""
        if _THREAD.match(text):
            self._close()
            self._of_thread = True
        elif _START.match(text.strip()) or _BOXED.match(text):
            wrapper = self._last is not None and text.strip().startswith("Original")
            if not wrapper and not self._chained:
                self._close()
            elif wrapper:
                self._link()
                self._since = len(self._chain)
            self._inside, self._chained = True, False
            self._boxed, self._bars = text.startswith(_OF_BOX), 0
        elif _CHAINED.match(text):
            self._link()
            self._chained = True
            if text.startswith("During"):
                self._since = len(self._chain)
        elif match := _LOGGED.match(text):
            self._close()
            self.reasons.append(classified("RuntimeError", match["message"]))
        elif _TERMINATE.match(text):
            self._close()
        elif match := _WHAT.match(text):
            self._close()
            self._last = "RuntimeError", match["message"], []
        else:
            return False
        return True

    def _continues(self) -> bool:
        """Whether the next line is still of the message, whatever it says."""
        assert self._last is not None
        rest = self._last[2]
        return bool(rest) and rest[-1].strip() == "Last error:"

    def _link(self) -> None:
        """Keep the error so far as an earlier one of a chain."""
        if self._last is not None:
            kind, message, rest = self._last
            self._chain.append(classified(kind, message, " ".join(rest)))
            self._last = None

    def _close(self) -> None:
        """Take the error that was read, if it has ended a process that is not another's start."""
        kind, message, _ = self._last or ("", "", [])
        of_launcher = _OF_LAUNCHERS.match(kind) or (kind == "Exception" and not message)
        if self._chain or not of_launcher:
            self._link()
        if self._chain and not self._of_thread:
            self.reasons.append(_of_chain(self._chain, self._since))
        self._chain, self._since, self._last = [], 0, None
        self._chained = self._of_thread = False
        self._mixed = self._broken = 0


def _of_chain(chain: Sequence[Reason], since: int) -> Reason:
    """What a chain of exceptions says: a handler, or who raises it again, says less.

    ``since``: the first that was not handled, but may have been raised again.
    """
    known = [reason for reason in chain if reason.cause is not None]
    lost = [reason for reason in chain if reason.weight == LOST]
    return _first(known, of_one_rank=False) or (lost or [*chain[since:], chain[-1]])[0]
