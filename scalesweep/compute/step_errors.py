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

from scalesweep.compute.elastic_report import RankEnd, read_report
from scalesweep.compute.error_texts import OWN, Printed, Reason, reason_of

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
# Open MPI writes its job before the rank.
_HOROVODRUN = re.compile(r"^\[(?:\w{1,20},)?(?P<rank>\d{1,7})\]<std(?:err|out|diag)>: ?")
# torchrun's own label has the number on the node, that of PyTorch the number among all.
_TORCHRUN = re.compile(r"\[(?:default|trainer|worker)(?P<rank>\d{1,7})\]:[ ]?")
_PYTORCH = re.compile(r"\[rank(?P<rank>\d{1,7})\]:(?P<marked> ?)")
# workflow/launchers/local_ranks.py, of ranks that had ended well when another failed.
_LEFT = re.compile(r"local_ranks: (?P<who>ranks? [\d, ]+) had ended with exit code 0 before$")
# What a shell says of a rank that srun ended because of another one.
_ENDED = re.compile(r"(?:.*: line \d+: +\d+ )?(?:Terminated|Killed|Aborted)\b")
_SIGNALS = {signal.strsignal(number): number for number in signal.valid_signals()}


class StepErrors(NamedTuple):
    """What Slurm says of the ranks; None or empty: nothing.

    ``first`` is how the rank ended that failed first by itself, as exit code and signal, one of
    which is None; ``memory`` and ``launch`` are the lines on a step that was killed for its memory,
    and on one that did not come up; ``own`` are the program's own lines, without labels, or
    that it could not be started. ``ranks`` and ``node`` are those of ``first``, and ``words`` are
    what these ranks printed; without labels, what was printed until they ended. ``reason``: why
    they ended, by their words; ``left``: ranks that had ended well before.
    """

    first: tuple[int | None, int | None] | None
    memory: str
    launch: str
    own: Sequence[str]
    ranks: str = ""
    node: str = ""
    words: Sequence[str] = ()
    reason: Reason | None = None
    left: str = ""

    @property
    def guilty(self) -> bool:
        """Whether these ranks ended by themselves: they neither waited in vain nor lost a peer."""
        return self.reason is None or self.reason.weight == OWN

    @property
    def who(self) -> str:
        """``rank 517 on node3``; ``says rank 0`` of others; empty if it is not known."""
        if not self.ranks:
            return ""
        if not self.guilty:
            return f"says rank {self.ranks}"
        where = f" on {self.node}" if self.node else ""
        return f"rank{'s' * (not self.ranks.isdecimal())} {self.ranks}{where}"


def read_step_errors(stderr: Path, argv: Iterable[str]) -> StepErrors:
    """What is in the log ``stderr`` of a program started with the command ``argv``."""
    try:
        text = _telling(stderr).decode(errors="replace")
    except (OSError, ValueError):
        text = ""
    lines = without_frames(text.replace("\r\n", "\n")).splitlines()
    labelled = any(map(_HOROVODRUN.match, lines))
    ranks = (_HOROVODRUN, _RANK_END, _LEFT)
    if labelled:
        lines = [line for line in lines if any(each.match(line) for each in ranks)]
    return step_errors(lines, labelled=has_labels(argv))


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


def without_labels(line: str, argv: Iterable[str]) -> str:
    """A line that a command's program printed, without the labels of launchers and of PyTorch."""
    return _without_labels(line, has_labels(argv)).text


class _Line(NamedTuple):
    """A line of a rank (None: not known) without labels; ``marked``: of what ended it."""

    text: str
    rank: int | None
    marked: bool


def _without_labels(line: str, labelled: bool) -> _Line:
    """A line without the labels of launchers and of PyTorch; ``labelled``: by srun --label."""
    label = (_LABEL.match(line) if labelled else None) or _HOROVODRUN.match(line)
    rank = int(label["rank"]) if label else None
    text = line[label.end() :] if label else line
    text = text.lstrip("\0")  # of a signal handler of PyTorch's
    if inner := _TORCHRUN.match(text):
        # Under srun its label is that of a node.
        text, rank = text[inner.end() :], None if label else int(inner["rank"])
    if named := _PYTORCH.match(text):
        return _Line(text[named.end() :], int(named["rank"]), bool(named["marked"]))
    return _Line(text, rank, marked=False)


def step_errors(lines: Iterable[str], labelled: bool = False) -> StepErrors:
    """What is said in the lines of a program's stderr; ``labelled``: by srun --label."""
    memory = launch = left = ""
    own: list[_Line] = []
    ends: list[RankEnd] = []
    until = 0
    for raw in lines:
        line = _without_labels(raw.rstrip(), labelled)
        text = line.text
        end = _TASK_END.match(text) or (None if line.rank is not None else _RANK_END.match(text))
        if gone := _LEFT.match(text):
            left = left or gone["who"]
            continue
        if not end and not _SLURM.match(text):
            if text.strip():
                own.append(line)
            continue
        if missing := _NOT_STARTED.match(text):
            why = f"cannot start {missing['program']}: {missing['why']}"
            own.append(_Line(why, line.rank, marked=False))
        memory = memory or (text if _MEMORY.search(text) else "")
        launch = launch or (text if _NOT_LAUNCHED.match(text) else "")
        if end and (ended := _end_of(end)):
            until = until if ends else len(own)
            ends.append(ended)
    texts = [line.text for line in own]
    if reported := read_report(texts):
        ends, until = reported, len(own)
    words = _Words(own, until if ends else len(own))
    blamed, reason = words.blamed(ends)
    said = words.of(blamed) if blamed else ()
    first = (blamed.code, blamed.signal) if blamed and ends else None
    ranks, node = (blamed.ranks, blamed.node) if blamed else ("", "")
    return StepErrors(
        first, without_source(memory), without_source(launch), texts, ranks, node,
        [line.text for line in said if not _ENDED.match(line.text)], reason, left,
    )  # fmt: skip


def _end_of(line: re.Match[str]) -> RankEnd | None:
    """How ranks ended by a launcher's line; None where srun ended them because of another.

    local_ranks.py tells of the first rank only, before it ends others: SIGTERM came from elsewhere.
    """
    ranks, node = line["tasks"].strip("[]"), line["node"]
    if line["code"]:
        return RankEnd(ranks, node, int(line["code"]), None)
    number = _SIGNALS.get(line["signal"])
    if number is None or (number == signal.SIGTERM and line.re is not _RANK_END):
        return None
    return RankEnd(ranks, node, None, number)


class _Words:
    """What the ranks printed: by rank where labels tell, and all until the first had ended."""

    def __init__(self, lines: Sequence[_Line], until: int) -> None:
        self._all = lines[:until]
        self._by_rank: dict[int, list[_Line]] = {}
        for line in lines:
            if line.rank is not None:
                self._by_rank.setdefault(line.rank, []).append(line)
        self._unlabelled = [line for line in self._all if line.rank is None]

    def of(self, end: RankEnd) -> Sequence[_Line]:
        """The lines of these ranks, of the first of several; where it has none, those of which
        nothing tells whose they are: C++ puts no label before its last words."""
        if not self._by_rank or not end.ranks:
            return self._all
        own = self._by_rank.get(int(re.findall(r"\d+", end.ranks)[0]), [])
        return own or self._unlabelled

    def blamed(self, ends: Sequence[RankEnd]) -> tuple[RankEnd | None, Reason | None]:
        """The rank that others ended of, and why it did; ``ends``: how ranks ended, in order.

        That is the first, unless its words are of having waited for others, or lost them, and
        others have errors of their own. Where those differ nothing is known of the cause.
        """
        first = ends[0] if ends else None
        reason = self._reason(first) if first else None
        if first and (reason is None or reason.weight == OWN):
            return first, reason
        others = [(end, self._reason(end)) for end in ends[1:]]
        named = {end.ranks for end in ends}
        code = (first.code, first.signal) if first else (1, None)
        silent = [RankEnd(str(rank), "", *code) for rank in self._by_rank if str(rank) not in named]
        others += [(end, why) for end in silent if (why := self._reason(end))]
        if not self._by_rank and not first:
            return None, _reason(self._all, of_one_rank=False)
        if why := _reason(self._unlabelled, of_one_rank=False):
            others.append((RankEnd("", "", *code), why))
        guilty = [
            (end, why) for end, why in others if (why.weight == OWN if why else _crashed(end))
        ]
        if not guilty and not first:  # who has waited, rather than who lost a peer
            weight = min((why.weight for _, why in others if why), default=OWN)
            guilty = [(end, why) for end, why in others if why and why.weight == weight]
        if not guilty:
            return first, reason
        end, why = guilty[0]
        if len({each.cause if each else None for _, each in guilty}) > 1:
            why = why and why._replace(cause=None)
        return end, why

    def _reason(self, end: RankEnd) -> Reason | None:
        """Why these ranks ended by their words; None where a signal says it, or nothing does."""
        if _crashed(end):
            return None
        lines = self.of(end)
        return _reason(lines, of_one_rank=bool(lines) and lines[0].rank is not None)


def _crashed(end: RankEnd) -> bool:
    """Whether a signal ended a rank that the program did not send itself."""
    return end.signal not in (None, signal.SIGABRT)


def _reason(lines: Iterable[_Line], of_one_rank: bool) -> Reason | None:
    return reason_of([Printed(line.text, line.marked) for line in lines], of_one_rank)


def without_source(line: str) -> str:
    """A line of Slurm's without the name of what has printed it."""
    return re.sub(r"^(?:srun|slurmstepd(?:-[\w.-]+)?): (?:error: )?", "", line)
