"""What srun and other launchers print about a program that failed: which rank was first, and why.

srun exits with the highest code of its tasks. With --kill-on-bad-exit that is 143, of those that
it has terminated itself, whatever the first one exited with; and a step that Slurm killed for its
memory looks the same. Both say more on stderr. mpirun and horovodrun print many lines after the
last one of the program's. Standard library only, for the launcher.
"""

import mmap
import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

# Of stderr.log: its end, and what is around the line that tells which rank ended first, after which
# a thousand ranks print a thousand tracebacks.
_BYTES = 1 << 20
_BEFORE, _AFTER = 1 << 18, 1 << 16
_FIRST_END = re.compile(
    rb"srun: error: \S+: tasks? [\d,\[\]-]+: (?:Exited with exit code|(?!Terminated)[A-Z])"
)
_LABEL = re.compile(r" {0,7}(?P<rank>\d{1,7}): ?")
_SLURM = re.compile(r"(?:srun|slurmstepd(?:-[\w.-]+)?): ")
# launch_common and slurm_step_launch: "srun: error: node[1-2]: tasks 0-1: Exited with exit code 3"
_TASK_END = re.compile(
    r"srun: error: (?P<node>\S+): tasks? (?P<tasks>[\d,\[\]-]+): "
    r"(?:Exited with exit code (?P<code>\d{1,3})|(?P<signal>[A-Z][\w /-]+?))(?: \(core dumped\))?$"
)
# workflow/launchers/local_ranks.py: "local_ranks: error: node1: rank 1: Exited with exit code 3"
_RANK_END = re.compile(
    r"local_ranks: error: (?P<node>\S+): rank (?P<tasks>\d+): "
    r"(?:Exited with exit code (?P<code>\d{1,3})|(?P<signal>[A-Z][\w /-]+))$"
)
_NOT_STARTED = re.compile(
    r"slurmstepd.*: error: execve\(\): (?P<program>.*): (?P<why>[A-Z][\w ]+)$"
)
_MEMORY = re.compile(
    r"exceeded memory limit|Exceeded (?:job|step) memory limit|oom[-_]kill event|Out Of Memory"
)
# The step did not come up, or lost a node: nothing that the program has done.
_NOT_LAUNCHED = re.compile(
    r"srun: error: (?:"
    r"Task launch for .*failed on node"
    r"|Node failure on "
    r"|.*(?:Communication connection failure|Unable to contact slurm controller"
    r"|Socket timed out on send/recv operation|Zero Bytes were transmitted))"
)
# Open MPI frames what it says itself: "mpirun detected that one or more processes exited with ..."
_FRAME = re.compile(r"^-{70,80}\n((?:(?!-{70,80}$).*\n){1,20}?)-{70,80}$", re.MULTILINE)
_MPIRUN = re.compile(r"mpirun|prterun|Primary job|MPI_ABORT|PRTE")
_NO_EXECUTABLE = re.compile(r"^Executable: (.+)$", re.MULTILINE)
# horovodrun labels the lines of ranks, and ends in a traceback of its own; so does local_ranks.py.
_HOROVODRUN = re.compile(r"^\[(?P<rank>\d+)\]<std(?:err|out)>: ?")
# What a shell says of a rank that srun ended because of another one.
_ENDED = re.compile(r"(?:.*: line \d+: +\d+ )?(?:Terminated|Killed|Aborted)\b")
_SIGNALS = {signal.strsignal(number): number for number in signal.valid_signals()}


class StepErrors(NamedTuple):
    """What Slurm says of the ranks; None or empty: nothing.

    ``first`` is how the rank ended that failed first by itself, as exit code and signal, one of
    which is None; ``memory`` and ``launch`` are the lines on a step that was killed for its memory,
    and on one that did not come up; ``own`` are the program's own lines, without srun's label, or
    that it could not be started. ``ranks`` and ``node`` are those of ``first``, and ``words`` are
    what these ranks printed; without labels, what was printed until they ended.
    """

    first: tuple[int | None, int | None] | None
    memory: str
    launch: str
    own: Sequence[str]
    ranks: str = ""
    node: str = ""
    words: Sequence[str] = ()

    @property
    def who(self) -> str:
        """``rank 517 on node3``; empty if it is not known."""
        if not self.ranks:
            return ""
        return f"rank{'s' * (not self.ranks.isdecimal())} {self.ranks} on {self.node}"


def read_step_errors(stderr: Path, argv: Iterable[str]) -> StepErrors:
    """What is in the log ``stderr`` of a program started with the command ``argv``."""
    try:
        text = _telling(stderr).decode(errors="replace")
    except (OSError, ValueError):
        text = ""
    lines = without_frames(text.replace("\r\n", "\n")).splitlines()
    ranks = [line for line in lines if _HOROVODRUN.match(line) or _RANK_END.match(line)]
    return step_errors(ranks or lines, labelled=has_labels(argv))


def _telling(path: Path) -> bytes:
    """The end of a log, and before it what is around the line on the first rank that ended."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size <= _BYTES:
            file.seek(0)
            return file.read()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
            end = log[size - _BYTES :]
            first = _FIRST_END.search(log)
            if first is None or first.start() >= size - _BYTES:
                return end
            start = max(0, first.start() - _BEFORE)
            return log[start : min(first.end() + _AFTER, size - _BYTES)] + b"\n" + end


def without_frames(text: str) -> str:
    """The lines of a program's stderr without those that mpirun prints of its end."""

    def said(frame: re.Match[str]) -> str:
        if not _MPIRUN.search(frame[1]):
            return frame[0]
        missing = _NO_EXECUTABLE.search(frame[1])
        return f"cannot start {missing[1].strip()}" if missing else ""

    return _FRAME.sub(said, text) if _MPIRUN.search(text) else text


def has_labels(argv: Iterable[str]) -> bool:
    """Whether a command has srun label each line with the rank that printed it."""
    words = list(argv)
    starts = [at for at, word in enumerate(words) if Path(word).name == "srun"]
    return bool(starts) and bool({"-l", "--label"} & set(words[starts[0] :]))


def step_errors(lines: Iterable[str], labelled: bool = False) -> StepErrors:
    """What is said in the lines of a program's stderr; ``labelled``: by srun --label."""
    first: tuple[int | None, int | None] | None = None
    memory = launch = ranks = node = ""
    own: list[str] = []
    until = 0
    by_rank: dict[int, list[str]] = {}
    for raw in lines:
        line = raw.rstrip()
        label = (_LABEL.match(line) if labelled else None) or _HOROVODRUN.match(line)
        if label:
            line = line[label.end() :]
        end = _TASK_END.match(line) or (None if label else _RANK_END.match(line))
        if not end and not _SLURM.match(line):
            if line.strip():
                own.append(line)
                if label:
                    by_rank.setdefault(int(label["rank"]), []).append(line)
            continue
        if missing := _NOT_STARTED.match(line):
            own.append(f"cannot start {missing['program']}: {missing['why']}")
        memory = memory or (line if _MEMORY.search(line) else "")
        launch = launch or (line if _NOT_LAUNCHED.match(line) else "")
        if end and first is None:
            if end["code"]:
                first = int(end["code"]), None
            # Terminated: by srun, because another rank had ended before.
            elif (number := _SIGNALS.get(end["signal"])) not in (None, signal.SIGTERM):
                first = None, number
            if first is not None:
                ranks, node, until = end["tasks"].strip("[]"), end["node"], len(own)
    words = own[:until]
    if by_rank and ranks:
        words = by_rank.get(int(re.findall(r"\d+", ranks)[0]), [])
    words = [line for line in words if not _ENDED.match(line)]
    return StepErrors(
        first, without_source(memory), without_source(launch), own, ranks, node, words
    )


def without_source(line: str) -> str:
    """A line of Slurm's without the name of what has printed it."""
    return re.sub(r"^(?:srun|slurmstepd(?:-[\w.-]+)?): (?:error: )?", "", line)
