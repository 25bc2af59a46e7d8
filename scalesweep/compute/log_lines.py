"""Logs as programs leave them: lines of text, each with the rank that printed it, if known.

Launchers of parallel programs put a label before every line: horovodrun ``[0]<stdout>:``, Open
MPI's ``mpirun --tag-output`` ``[1,0]<stdout>:``, ``srun --label`` ``0: ``. Labels, colours and
overwritten progress bars are taken off. Standard library only: the launcher reads logs on compute
nodes.
"""

import codecs
import contextlib
import errno
import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, NamedTuple

from scalesweep.core.files import NotAFileError, open_regular

_CHUNK_BYTES = 1 << 20
# A line without an end is searched in pieces: no log may fill the memory.
_LONGEST = 1 << 20
# In none of these may two parts match the same text: a line without an end would take for ever.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
# Before the bracket horovodrun may put the time, inside it Open MPI its job; Open MPI 5, whose jobs
# have an @, puts a space behind.
_LABEL = re.compile(
    r"(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    r"\[(?:[^\[\],\s@]+(?:(?P<spaced>@)[^\[\],\s@]*)?,)?(?P<rank>\d{1,7})\]<std(?:out|err|diag)>:"
    r"(?(spaced) ?|)"
)
_SRUN_LABEL = re.compile(r" *(?P<rank>\d{1,7}): ?")
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


# Before a stamp (docs/reference/stamps.md), which a thread may print into the middle of a line.
MARKER = "@spans "


class Line(NamedTuple):
    """A line without its label: ``number`` counts from 1 in its file; ``rank`` is None if no
    label tells it."""

    text: str
    number: int
    rank: int | None


def read_lines(path: Path, srun_labels: bool = False) -> Iterator[Line]:
    """Lines of a log, read piece by piece; raises OSError where it cannot be read.

    ``srun_labels``: lines begin as ``srun --label`` writes them, which no other sign tells from a
    table. What is not UTF-8 (or UTF-16 with a byte order mark) becomes U+FFFD. Files that gzip or
    xz has packed are read as what is in them.
    """
    labels = _Labels(srun_labels)
    with open_packed(path) as file:
        for number, piece in _pieces(file):
            yield labels.taken_off(number, _plain(piece))


class DamagedPackError(OSError):
    """What begins as gzip or xz packs a file does not go on so, or ends too early."""


_PACKERS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "lzma"}
PACKED = (".gz", ".xz")  # ends of the names of their files


def has_packed_name(path: Path) -> bool:
    """Whether a file's name ends as gzip and xz name what they have packed."""
    return path.name.endswith(PACKED)


@contextlib.contextmanager
def open_packed(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, unpacked where gzip or xz has packed it.

    Raises OSError where it cannot be read, also while it is: DamagedPackError if a packed file was
    cut.
    """
    with open_regular(path) as file:
        start = file.read(6)
        if start is None:  # of what would block, as /proc/kmsg does
            raise NotAFileError(errno.EAGAIN, "is not a file with an end", str(path))
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


def _plain(piece: str) -> str:
    if "\x1b" in piece:
        piece = _ESCAPES.sub("", piece)
    return piece.replace("\b", "") if "\b" in piece else piece


def _pieces(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """What is between line feeds and carriage returns, with the number of its line."""
    decoder = None
    rest, number = "", 1
    while True:
        chunk = file.read(_CHUNK_BYTES)
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_encoding(chunk))("replace")
        if chunk and not chunk.strip(b"\0"):
            continue  # the hole of a sparse file: gigabytes that say nothing
        lines = (rest + decoder.decode(chunk, final=not chunk)).split("\n")
        rest = lines.pop()
        for line in lines:
            for piece in line.split("\r") if "\r" in line else (line,):
                yield number, piece
            number += 1
        if not chunk:
            break
        if len(rest) > _LONGEST:
            *done, rest = rest.split("\r") if "\r" in rest[:-1] else (rest, "")
            for piece in done:
                yield number, piece
    if rest:
        for piece in rest.split("\r"):
            yield number, piece


def _encoding(start: bytes) -> str:
    return next(
        (name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), "utf-8"
    )


class _Labels:
    """Takes labels off. Of a piece with several labels the last one's text alone is whole: what one
    rank began before another wrote into its line is left out."""

    def __init__(self, srun_labels: bool) -> None:
        self._srun = srun_labels
        # Line and rank of the piece before: after a carriage return the label is not repeated.
        self._number = 0
        self._rank: int | None = None

    def taken_off(self, number: int, piece: str) -> Line:
        """The line of a piece."""
        rank = self._rank if number == self._number else None
        label = None
        if self._srun:
            label = _SRUN_LABEL.match(piece) if rank is None else None
        elif "]<std" in piece:
            *_, label = (None, *_LABEL.finditer(piece))
        if label:
            rank, piece = int(label["rank"]), piece[label.end() :]
        self._number, self._rank = number, rank
        return Line(piece, number, rank)
