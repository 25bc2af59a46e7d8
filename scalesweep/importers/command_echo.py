"""Commands that precede their output in a log: echoes of ``bash -x``, or typed ones;
and lines that no program can have printed.
"""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

MAX_LENGTH = 20_000
_TRACE = re.compile(r"^\++\s+")
_ASSIGNMENT = re.compile(r"^\++\s+([A-Z][A-Z0-9_]*)=(\S*)$")
_INTERPRETER = re.compile(r"python[\d.]*")
_LAUNCHER = re.compile(r"mpirun|mpiexec|mpiexec\.hydra|orterun|horovodrun|srun|python[\d.]*")
# Where the shell goes on with something else.
_END = re.compile(r"[|&;<>]|\d>")
_DAMAGE = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_HOSTS = ("-H", "-host", "--host", "--hosts")
_PER_NODE = ("-npernode", "--npernode", "--ntasks-per-node")
_RANKS = ("-np", "-n", "--np", "--ntasks")


@dataclass(frozen=True)
class Echo:
    """A command of a known program.

    ``flags`` are the program's own, without dashes; one without a value is None. ``launcher`` are
    the words before the program, ``variables`` what the shell set for it.
    """

    line: int
    words: tuple[str, ...]
    launcher: tuple[str, ...]
    flags: Mapping[str, str | None]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def ranks(self) -> int | None:
        """How many processes the launcher was asked to start."""
        return _number(self._launch_value(_RANKS))

    @property
    def ranks_per_node(self) -> int | None:
        """Processes on each node, if the launcher's words state it and all nodes have as many."""
        if (number := _number(self._launch_value(_PER_NODE))) is not None:
            return number
        slots = [host.partition(":")[2] or "1" for host in self._launch_value(_HOSTS).split(",")]
        return _number(slots[0]) if len(set(slots)) == 1 and self._launch_value(_HOSTS) else None

    def _launch_value(self, names: Collection[str]) -> str:
        words = self.launcher
        for index, word in enumerate(words):
            name, _, value = word.partition("=")
            if name in names:
                return value or (words[index + 1] if index + 1 < len(words) else "")
        return ""


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,6}", text, re.ASCII) else None


def read_echo(text: str, programs: Collection[str], line: int) -> Echo | None:
    """The command in a line of a log; None if the line is not a command of one of ``programs``.

    ``programs`` are file names. Prose, tracebacks and assignments that name a program are none.
    """
    if len(text) > MAX_LENGTH or not any(program in text for program in programs):
        return None
    try:
        words = shlex.split(_TRACE.sub("", text.rstrip(" \\")))
    except ValueError:
        return None
    place = next(
        (i for i, word in enumerate(words) if PurePosixPath(word).name in programs), len(words)
    )
    if place == len(words):
        return None
    names = [PurePosixPath(word).name for word in words[:place]]
    # A prompt may precede the command.
    begin = next((i for i, name in enumerate(names) if _LAUNCHER.fullmatch(name)), place)
    started = place == 0 or any(_INTERPRETER.fullmatch(name) for name in names)
    end = next((i for i in range(place, len(words)) if _END.match(words[i])), len(words))
    flags = _flags(words[place + 1 : end])
    if not started or flags is None:
        return None
    return Echo(line, tuple(words[begin:end]), tuple(words[begin:place]), flags)


def _flags(words: list[str]) -> dict[str, str | None] | None:
    """Flags with their values; None if the words are not all flags and values."""
    flags: dict[str, str | None] = {}
    name: str | None = None
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            flags[name] = value if equals else None
        elif name is not None and flags[name] is None:
            flags[name] = word
        else:
            return None
    return flags


def read_assignment(text: str) -> tuple[str, str] | None:
    """Name and value of a variable that ``bash -x`` shows as set."""
    match = _ASSIGNMENT.match(text)
    return (match[1], match[2]) if match else None


def is_damaged(text: str) -> bool:
    """Whether a line has characters that no program prints.

    A hole in a file reads as NULs: whole lines may be lost there.
    """
    return _DAMAGE.search(text) is not None
