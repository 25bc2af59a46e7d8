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
from pathlib import Path
from typing import BinaryIO, NamedTuple

# Characters of a line that are read at once: no log may fill the memory.
_LONGEST = 1 << 20
# In none of these may two parts match the same text: a line without an end would take for ever.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])|\x08")
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
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # what their files begin with
PACKED = (".gz", ".xz")  # ends of the names of their files
# Before a stamp (docs/reference/stamps.md), which a thread may print into the middle of a line.
MARKER = "@spans "


class Line(NamedTuple):
    """A line without its labels: ``number`` counts from 1 in its file; ``rank`` by the launcher's
    label and ``local`` by torchrun's or PyTorch's are None if there is none."""

    text: str
    number: int
    rank: int | None = None
    local: int | None = None


class DamagedPackError(OSError):
    """What begins as gzip or xz packs a file does not go on so, or ends too early."""


def read_lines(path: Path, srun_labels: bool = False, collected: bool = False) -> Iterator[Line]:
    """Lines of a log, read piece by piece; raises OSError where it cannot be read.

    ``srun_labels``: lines begin as ``srun --label`` writes them, which no other sign tells from a
    table. ``collected``: what collectors of logs put in front is taken off, of two at most. So are
    colours and overwritten progress bars, and of a line with several labels of launchers all but
    the text of the last one. Files that gzip or xz has packed are read as what is in them.
    """
    number, rank = 0, None
    for line, piece in _pieces(path):
        rank = rank if line == number else None  # after a carriage return it is not repeated
        escaped = "\x1b" in piece or "\b" in piece
        number, text, label = line, ESCAPES.sub("", piece) if escaped else piece, None
        for _ in range(2 * collected):
            if before := _COLLECTED.match(text):
                text = text[before.end() :]
        if "]<std" in text:
            *_, label = (None, *STREAM_LABEL.finditer(text))
        elif srun_labels and rank is None:
            label = SRUN_LABEL.match(text)
        if label:
            rank, text = int(label["rank"]), text[label.end() :]
        local = TORCH_LABEL.match(text) if "]:" in text else None
        # Of an imported log it shows itself whether srun's labels are there, before torchrun's.
        if local and not (collected and not srun_labels and SRUN_LABEL.match(text)):
            yield Line(text[local.end() :], number, rank, int(local["rank"]))
        else:
            yield Line(text, number, rank)


def rank_lines(path: Path, ranks: int, srun_labels: bool) -> Iterator[Line]:
    """Lines of a log of so many ranks, whose ``rank`` is that of all.

    Under ``srun --label``, whose tasks are the nodes then, both labels count together: rank = task
    x ranks of each + number of torchrun's.
    """
    labels = {line.rank for line in read_lines(path, True)} if srun_labels else set()
    each = ranks // max(1, len(labels - {None}))
    for text, number, task, own in read_lines(path, srun_labels):
        rank = task
        if own is not None and own < ranks:
            # A task that is a rank itself says so once more.
            rank = own if task is None else task * each + own if 1 < each > own else task
        yield Line(text, number, rank)


def without_srun_label(text: str) -> str | None:
    """A line without what ``srun --label`` puts in front, and torchrun behind it; None if it does
    not begin so."""
    if (label := SRUN_LABEL.match(text)) is None:
        return None
    inner = TORCH_LABEL.match(text, label.end())
    return text[(inner or label).end() :]


@contextlib.contextmanager
def open_packed(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, unpacked where gzip or xz has packed it.

    Raises OSError where it cannot be read, also while it is: DamagedPackError if a packed file was
    cut.
    """
    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        if not start.startswith((_GZIP, _XZ)):
            yield file
            return
        import gzip  # a launcher, which reads no packed logs, is spared these
        import lzma

        try:
            with (gzip if start.startswith(_GZIP) else lzma).open(file) as unpacked:
                yield unpacked
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
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
