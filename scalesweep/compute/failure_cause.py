"""Why a program failed: the rank that failed first, its last error, and the cause that this names.

Launchers say which rank ended first (srun, torchrun, ``local_ranks.py``), in the middle of what all
ranks print. A rank that dies often takes others with it, whose errors are of its end, or of having
waited for it: so an error has a weight, and whoever has one of its own is blamed. Standard library
only, for the launcher.
"""

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.job_spec import STREAMS, Order
from scalesweep.compute.log_lines import ESCAPES, SRUN_LABEL, STREAM_LABEL, TORCH_LABEL
from scalesweep.compute.program import Failure, Outcome
from scalesweep.core import disk_full
from scalesweep.core.causes import OF_EXIT_CODE, Cause
from scalesweep.core.record import last_lines

# The less a text says about why the run ended, the higher.
OWN, WAITED, LOST = range(3)
_LONGEST, _MOST = 2000, 300  # characters of a line that are looked at, and of a text that is told
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
_BYTES = 1 << 24  # of the end of stderr.log
_LINES = 200  # of a rank
# Exit codes of Python after an exception, and of launchers after SIGABRT, which C++ ends with.
_BY_ERROR = (1, 128 + signal.SIGABRT, 256 - signal.SIGABRT)
_HOW = r"(?:Exited with exit code (?P<code>\d{1,3})|(?P<signal>[A-Z][\w /-]+?))"
_SRUN_END = re.compile(
    rf"srun: error: (?P<node>\S+): tasks? (?P<ranks>[\d,\[\]-]+): {_HOW}(?: \(core dumped\))?$"
)
_LOCAL_END = re.compile(rf"local_ranks: error: (?P<node>\S+): rank (?P<ranks>\d+): {_HOW}$")
_LOCAL_LEFT = re.compile(r"local_ranks: (ranks? [\d, ]+) had ended with exit code 0 before$")
_TORCHRUN_END = re.compile(  # in its report (torch.distributed.elastic, ChildFailedError)
    r"(?P<root>Root Cause \(first observed failure\):\n.*\n)?  time +: (?P<time>\S+)\n"
    r"  host +: (?P<node>\S+)\n  rank +: (?P<rank>\d+).*\n  exitcode +: (?P<code>-?\d{1,3})\b"
)
_SLURM = re.compile(r"(?:srun|slurmstepd(?:-[\w.-]+)?): (?:error: )?")
_NOT_STARTED = re.compile(r"slurmstepd.*: error: execve\(\): (.*): ([A-Z][\w ]+)$")
_MEMORY = re.compile(
    r"exceeded memory limit|Exceeded (?:job|step) memory limit|oom[-_]kill event|Out Of Memory"
)
# The step did not come up, or lost a node: nothing that the program has done.
_NOT_LAUNCHED = re.compile(
    r"srun: error: (?:Task launch for .*failed on node|Node failure on |.*(?:Communication"
    r" connection failure|Unable to contact slurm controller|Socket timed out on send/recv"
    r" operation|Zero Bytes were transmitted))"
)
# Open MPI frames what it says itself: "mpirun detected that one or more processes exited with ..."
_FRAME = re.compile(r"^-{70,80}\n((?:(?!-{70,80}$).*\n){1,20}?)-{70,80}$", re.MULTILINE)
_MPIRUN = re.compile(r"mpirun|prterun|Primary job|MPI_ABORT|PRTE")
# What a shell says of a rank that srun ended because of another one.
_ENDED = re.compile(r"(?:.*: line \d+: +\d+ )?(?:Terminated|Killed|Aborted)\b")
_SIGNALS = {signal.strsignal(number): number for number in signal.valid_signals()}


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
        line = ESCAPES.sub("", raw[:_LONGEST]).strip("\0\r\n")
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


class End(NamedTuple):
    """How ranks ended (as Slurm lists them): exit code, or less a signal."""

    ranks: str
    node: str
    code: int

    @property
    def crashed(self) -> bool:
        """Whether a signal ended it that the program did not send itself."""
        return self.code < 0 and self.code != -signal.SIGABRT


def failure_of(outcome: Outcome, work: Path, spec: Order) -> Failure:
    """Why the program of an attempt failed by itself; ``work``: the attempt's folder."""
    last = [line for log in STREAMS.values() for line in last_lines(work / log)]
    labelled, several = spec.get("srun_labels", False), spec["params"]["ranks"] > 1
    if (full := disk_full.why_failed(work, last)) is not None:
        return Failure(Cause.DISK_FULL, _unlabelled(full, labelled)[0])
    said = Said.read(work / "stderr.log", labelled)
    blamed, reason = said.blamed(not several)
    if said.launch and not said.ends:
        return Failure(Cause.LAUNCH_FAILED, said.launch)
    guilty = reason is None or reason.weight == OWN
    more: dict[str, Any] = {}
    if blamed and said.ends:
        # srun itself exits with 143 where it ends the other ranks (--kill-on-bad-exit).
        exited = blamed.code >= 0
        more = {"exit_code": blamed.code if exited else None}
        more["signal"] = None if exited else -blamed.code
        outcome = outcome._replace(**more)
        # Who waited for others in vain, or lost them, is not at fault.
        if blamed.node and guilty:
            more |= {"first_ranks": blamed.ranks, "first_nodes": blamed.node}
    if said.memory:
        return Failure(Cause.OUT_OF_MEMORY, said.memory, more)
    code, text = _native_error(work)
    code = code or outcome.exit_code
    if text or not (code in _BY_ERROR or outcome.signal == signal.SIGABRT):
        reason = None  # the program has said more, or ends so by its own choice
    # What others print after a silent rank has gone is of its end.
    lines = said.of(blamed) or ([] if said.ends and several else said.own)
    text = text or (reason.text if reason else _own_line(lines, spec["benchmark"]))
    cause, detail = _cause(outcome, code, spec, reason, text)
    if reason and reason.weight != OWN and said.left and cause == Cause.NON_ZERO_EXIT:
        detail = f"exit code {code}: {said.left} had ended with exit code 0 before: {text}"
    if blamed and blamed.ranks and several:
        where = f" on {blamed.node}" if blamed.node else ""
        who = f"rank {blamed.ranks}{where}" if guilty else f"says rank {blamed.ranks}"
        detail = f"{detail} ({who})"
    return Failure(cause, detail, more)


def _cause(
    outcome: Outcome, code: int | None, spec: Order, reason: Reason | None, text: str
) -> tuple[str, str]:
    """Cause and detail of an outcome whose words are ``text``, or name ``reason``."""
    # An external program gives its exit codes a meaning of its own.
    known = {} if "extract" in spec else OF_EXIT_CODE
    if code in known and (text or known[code] != Cause.UNSUPPORTED):
        return known[code], text or f"exit code {code}"
    cause = reason.cause if reason else None
    killed = outcome.signal == signal.SIGKILL or code in (1, 137)
    if outcome.oom and killed and cause in (None, Cause.KILLED):
        return Cause.OUT_OF_MEMORY, "the kernel killed a process for lack of memory during the run"
    if cause is not None:
        return cause, text
    if outcome.signal is not None:
        why = f": {text}" if reason else ""
        return Cause.KILLED, f"signal {signal.Signals(outcome.signal).name}{why}"
    return Cause.NON_ZERO_EXIT, f"exit code {code}" + (f": {text}" if text else "")


class Said:
    """What the ranks and their launcher have printed on stderr.

    ``ends``: how ranks ended by themselves, in order; ``memory`` and ``launch``: Slurm's lines on a
    step that was killed for its memory, and on one that did not come up; ``left``: ranks that had
    ended well before; ``own``: the program's own last lines, without labels.
    """

    def __init__(self, text: str, labelled: bool) -> None:
        self.memory = self.launch = self.left = ""
        self.ends: list[End] = []
        self._lines: list[tuple[str, int | None]] = []
        self._until: int | None = None  # so many lines until the first end
        lines = _FRAME.sub(_without_frame, text).splitlines()
        if any(map(STREAM_LABEL.match, lines)):  # the rest is of the launcher
            known = (STREAM_LABEL, _LOCAL_END, _LOCAL_LEFT)
            lines = [line for line in lines if any(each.match(line) for each in known)]
        for line in lines:
            own, rank = _unlabelled(line.rstrip(), labelled)
            if own.strip() and not self._of_launcher(own, rank):
                self._lines.append((own, rank))
        if reported := _ends_of_torchrun(text):
            self.ends, self._until = reported, None
        self._labelled = {rank for _, rank in self._lines if rank is not None}
        self.own = [text for text, _ in self._lines[-_LINES:]]

    @classmethod
    def read(cls, path: Path, labelled: bool) -> "Said":
        """What is at the end of a log; ``labelled``: by srun --label."""
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _BYTES))
                text = file.read().decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            text = ""
        return cls(text, labelled)

    def _of_launcher(self, text: str, rank: int | None) -> bool:
        """Take a line of the launcher; False for one of a rank."""
        local = _LOCAL_END.match(text) if rank is None else None
        if left := _LOCAL_LEFT.match(text):
            self.left = self.left or left[1]
        elif end := local or _SRUN_END.match(text):
            code = int(end["code"]) if end["code"] else -_SIGNALS.get(end["signal"], 0)
            # srun ends the others by SIGTERM, of whom local_ranks.py says nothing.
            if code and (local or code != -signal.SIGTERM):
                self._until = len(self._lines) if self._until is None else self._until
                self.ends.append(End(end["ranks"].strip("[]"), end["node"], code))
        elif missing := _NOT_STARTED.match(text):
            self._lines.append((f"cannot start {missing[1]}: {missing[2]}", rank))
        elif not _SLURM.match(text):
            return False
        own = _SLURM.sub("", text)
        self.memory = self.memory or (own if own != text and _MEMORY.search(text) else "")
        self.launch = self.launch or (own if _NOT_LAUNCHED.match(text) else "")
        return True

    def of(self, end: End | None) -> list[str]:
        """The last lines of these ranks (of the first of several); without labels, what all had
        printed when the first ended."""
        if end is None:
            return []
        lines = [text for text, rank in self._lines[: self._until] if rank is None]
        if end.ranks and (number := int(re.findall(r"\d+", end.ranks)[0])) in self._labelled:
            lines = [text for text, rank in self._lines if rank == number]
        return [text for text in lines[-_LINES:] if not _ENDED.match(text)]

    def blamed(self, single: bool) -> tuple[End | None, Reason | None]:
        """The rank that others ended of, and why it did; ``single``: there is only one.

        That is the first that ended, unless it waited for others or lost them, and another one has
        an error of its own.
        """
        code = self.ends[0].code if self.ends else 1
        named = {end.ranks for end in self.ends}
        silent = [End(str(n), "", code) for n in sorted(self._labelled) if str(n) not in named]
        ends = [*self.ends, *silent] or [End("", "", code)]
        alone = single or bool(self._labelled)
        each = [(it, None if it.crashed else reason_of(self.of(it), alone)) for it in ends]
        if self.ends and each[0][1] is None:
            return each[0]
        known = [(end, why) for end, why in each if why or end.crashed]
        first = (self.ends[0] if self.ends else None), None
        return min(known, key=lambda it: it[1].weight if it[1] else OWN, default=first)


def _ends_of_torchrun(text: str) -> list[End]:
    """How ranks ended by torchrun's report, those first that an agent saw first."""
    entries = sorted(
        _TORCHRUN_END.finditer(text), key=lambda entry: (entry["root"] is None, entry["time"])
    )
    ends = [End(entry["rank"], entry["node"], int(entry["code"])) for entry in entries]
    return [end for end in ends if end.code != -signal.SIGTERM]


def _unlabelled(line: str, labelled: bool) -> tuple[str, int | None]:
    """A line without the labels of launchers and of PyTorch, and its rank."""
    label = (SRUN_LABEL.match(line) if labelled else None) or STREAM_LABEL.match(line)
    rank = int(label["rank"]) if label else None
    text = (line[label.end() :] if label else line).lstrip("\0")
    while inner := TORCH_LABEL.match(text):
        # torchrun's is the number on a node, whose label under srun stands before it.
        rank = int(inner["rank"]) if inner["by"] == "rank" or not label else None
        text = text[inner.end() :]
    return text, rank


def _without_frame(frame: re.Match[str]) -> str:
    if not _MPIRUN.search(frame[1]):
        return frame[0]
    missing = re.search(r"^Executable: (.+)$", frame[1], re.MULTILINE)
    return f"cannot start {missing[1].strip()}" if missing else ""


def _native_error(work: Path) -> tuple[int | None, str]:
    """Exit code and message that the program left in native_error.json, or (None, "").

    horovodrun exits with 1 whatever its processes exit with.
    """
    try:
        error = json.loads((work / "native_error.json").read_bytes())
        return int(error["exit_code"]), " ".join(str(error["message"]).split())
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _own_line(lines: Sequence[str], benchmark: str) -> str:
    """The program's own error line (``error: ...`` or ``<benchmark>: ...``), else the last one."""
    own = re.compile(rf"(?:error|{re.escape(benchmark)}): (?=.)|(?=cannot start)")
    begun = ((line, own.match(line)) for line in reversed(lines))
    said = next((line[start.end() :] for line, start in begun if start), None)
    return (said or (lines[-1] if lines else "")).strip()
