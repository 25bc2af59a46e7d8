"""Logs as programs leave them: lines of text, each with the rank that printed it, if known.

Launchers put a label before every line: horovodrun ``[0]<stdout>:``, Open MPI's ``mpirun
--tag-output`` ``[1,0]<stdout>:``, ``srun --label`` ``0: ``; torchrun (``--tee``) its agent's
``[default0]:``, PyTorch ``[rank0]:`` before what ends a rank. Collectors of logs put a time or a
container's name before them. Standard library only: the launcher reads logs on compute nodes.
"""

import contextlib
import io
import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NamedTuple

# Characters of a line that are read at once: no log may fill the memory.
_LONGEST = 1 << 20
# In none of these may two parts match the same text: a line without an end would take for ever.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|\x08")
# Before the bracket horovodrun may put the time, inside it Open MPI its job; Open MPI 5, whose jobs
# have an @, puts a space behind.
STREAM_LABEL = re.compile(
    r"(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[(?:[^\[\],\s@]+(?:(?P<spaced>@)[^\[\],\s@]*)?,)?(?P<rank>\d{1,7})\]<std(?:out|err|diag)>:"
    r"(?(spaced) ?|)"
)
SRUN_LABEL = re.compile(r" {0,7}(?P<rank>\d{1,7}): ?")
# torchrun's label, also behind the time that a continuous integration service writes.
TORCH_LABEL = re.compile(
    r"(?:\S{1,40} )?\[(?P<by>rank|default|trainer|worker)(?P<rank>\d{1,7})\]: ?"
)
# What collectors put in front of every line: Kubernetes and continuous integration a time
# (containerd the stream, too), docker compose the container, Ray and SkyPilot the actor, syslog
# host and process.
_COLLECTED = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z (?:std(?:out|err) [FP] )?"
    r"|[A-Za-z][\w.]{0,40}(?:-[\w.]{1,40}){0,6}-\d{1,6} {1,8}\| "
    r"|\([^()]{1,80}\bpid=\d{1,9}(?:, ip=[\d.]{7,15})?\) "
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} \S{1,60}\[\d{1,9}\]: "
    r"|std(?:out|err): |wandb: )"
)
_PACKERS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "lzma"}
PACKED = (".gz", ".xz")  # ends of the names of their files
# Before a stamp (docs/reference/stamps.md), which a thread may print into the middle of a line.
MARKER = "@spans "


class Line(NamedTuple):
    """A line without its label: ``number`` counts from 1 in its file; ``rank`` is None if no
    label tells it."""

    text: str
    number: int
    rank: int | None


class Printer(NamedTuple):
    """Who printed a line: the rank by the launcher's label, and by torchrun's."""

    rank: int | None = None
    local: int | None = None


class DamagedPackError(OSError):
    """What begins as gzip or xz packs a file does not go on so, or ends too early."""


def read_lines(path: Path, srun_labels: bool = False) -> Iterator[Line]:
    """Lines of a log, read piece by piece; raises OSError where it cannot be read.

    ``srun_labels``: lines begin as ``srun --label`` writes them, which no other sign tells from a
    table. Colours and overwritten progress bars are taken off, of a line with several labels all
    but the text of the last one. Files that gzip or xz has packed are read as what is in them.
    """
    number, rank = 0, None
    for line, piece in _pieces(path):
        rank = rank if line == number else None  # after a carriage return it is not repeated
        escaped = "\x1b" in piece or "\b" in piece
        number, text, label = line, _ESCAPES.sub("", piece) if escaped else piece, None
        if srun_labels:
            label = SRUN_LABEL.match(text) if rank is None else None
        elif "]<std" in text:
            *_, label = (None, *STREAM_LABEL.finditer(text))
        if label:
            rank, text = int(label["rank"]), text[label.end() :]
        yield Line(text, number, rank)


def rank_lines(path: Path, ranks: int, srun_labels: bool) -> Iterator[Line]:
    """Lines of a log of so many ranks, without the labels of torchrun and PyTorch.

    Under ``srun --label``, whose tasks are the nodes then, both labels count together: rank = task
    x ranks of each + number of torchrun's.
    """
    labels = {line.rank for line in read_lines(path, True)} if srun_labels else set()
    each = ranks // max(1, len(labels - {None}))
    for line in read_lines(path, srun_labels):
        match = TORCH_LABEL.match(line.text) if "]:" in line.text else None
        if match is None or int(match["rank"]) >= ranks:
            yield line
            continue
        own, task = int(match["rank"]), line.rank
        # A task that is a rank itself says so once more.
        rank = own if task is None else task * each + own if 1 < each > own else task
        yield Line(line.text[match.end() :], line.number, rank)


def uncollected(text: str) -> str:
    """A line without what collectors of logs put in front, two of them at most."""
    for _ in range(2):
        if (match := _COLLECTED.match(text)) is None:
            return text
        text = text[match.end() :]
    return text


def bare(text: str) -> str:
    """A line without what collectors of logs, ``srun --label`` and torchrun put in front."""
    text = uncollected(text)
    for _ in range(2):
        if (match := SRUN_LABEL.match(text) or TORCH_LABEL.match(text)) is None:
            return text
        text = text[match.end() :]
    return text


def has_srun_label(text: str) -> bool:
    """Whether a line begins as ``srun --label`` writes it."""
    return SRUN_LABEL.match(uncollected(text)) is not None


def unlabelled(line: Line, srun: bool) -> tuple[str, Printer]:
    """The program's own words, and who printed them; ``srun``: its labels are there."""
    text, rank = uncollected(line.text), line.rank
    if srun and rank is None and (label := SRUN_LABEL.match(text)):
        text, rank = text[label.end() :], int(label["rank"])
    if "]:" in text and (label := TORCH_LABEL.match(text)):
        return text[label.end() :], Printer(rank, int(label["rank"]))
    return text, Printer(rank)


@contextlib.contextmanager
def open_packed(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, unpacked where gzip or xz has packed it.

    Raises OSError where it cannot be read, also while it is: DamagedPackError if a packed file was
    cut.
    """
    with path.open("rb") as file:
        start = file.read(6)
        packer = next((it for mark, it in _PACKERS.items() if start.startswith(mark)), None)
        file.seek(0)
        if packer is None:
            yield file
            return
        # A launcher, which reads no packed logs, is spared these imports.
        module = import_module(packer)
        own = tuple(getattr(module, name, EOFError) for name in ("BadGzipFile", "LZMAError"))
        try:
            with module.open(file) as unpacked:
                yield unpacked
        except (EOFError, zlib.error, *own) as error:
            raise DamagedPackError(0, f"the packed file is damaged ({error})") from None


def _pieces(path: Path) -> Iterator[tuple[int, str]]:
    """What is between line feeds and carriage returns, with the number of its line.

    What is not UTF-8 (or UTF-16 with a byte order mark) becomes U+FFFD.
    """
    with open_packed(path) as file:
        start = file.read(2)
        file.seek(0)
        encoding = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
        reader = io.TextIOWrapper(file, encoding, errors="replace", newline="\n")
        number, rest = 1, ""
        while text := reader.readline(_LONGEST):
            *pieces, last = (rest + text.removesuffix("\n")).split("\r")
            ended = text.endswith("\n") or len(last) >= _LONGEST
            yield from ((number, piece) for piece in pieces)
            if ended:
                yield number, last
            rest, number = "" if ended else last, number + text.endswith("\n")
        if rest:
            yield number, rest
        reader.detach()
