"""Logs as programs leave them: lines of text, each with the rank that printed it, if known.

Launchers of parallel programs put a label before every line: horovodrun ``[0]<stdout>:``, Open
MPI's ``mpirun --tag-output`` ``[1,0]<stdout>:``, ``srun --label`` ``0: ``. Labels, colours and
overwritten progress bars are taken off, lines that two ranks have written into each other are
put together again. Standard library only: the launcher reads logs on compute nodes.
"""

import codecs
import contextlib
import errno
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
_SRUN_LABEL = re.compile(r" *(\d{1,7}): ?")
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


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
    joiner = _Joiner(srun_labels)
    with open_packed(path) as file:
        for number, piece in _pieces(file):
            yield from joiner.add(number, _plain(piece))
    yield from joiner.rest()


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


@dataclass
class _Joiner:
    """Takes labels off and joins what one rank began before another wrote into its line."""

    srun_labels: bool
    # Rank -> the line that it has begun.
    begun: dict[int, str] = field(default_factory=dict)
    # Line and rank of the piece before: after a carriage return the label is not repeated.
    number: int = 0
    rank: int | None = None

    def add(self, number: int, piece: str) -> Sequence[Line]:
        """The lines that are whole with this piece."""
        inherited = self.rank if number == self.number else None
        self.number, self.rank = number, inherited
        if self.srun_labels:
            if inherited is None and (label := _SRUN_LABEL.match(piece)):
                self.rank, piece = int(label[1]), piece[label.end() :]
            return (Line(piece, number, self.rank),)
        label = _LABEL.match(piece)
        if label and not self.begun and piece.find("]<std", label.end()) < 0:  # as most lines are
            self.rank = int(label["rank"])
            return (Line(piece[label.end() :], number, self.rank),)
        labels = list(_LABEL.finditer(piece)) if "]<std" in piece else []
        if not labels:
            return (self._unlabelled(piece, number, inherited),)
        lines = self._cut(piece[: labels[0].start()], number, inherited)
        for label, following in itertools.pairwise((*labels, None)):
            assert label is not None
            self.rank = int(label["rank"])
            end = None if following is None else following.start()
            text = self.begun.pop(self.rank, "") + piece[label.end() : end]
            if end is None or len(text) > _LONGEST:
                lines.append(Line(text, number, self.rank))
            else:
                self.begun[self.rank] = text
        return lines

    def rest(self) -> Iterator[Line]:
        """What was begun and never ended."""
        for rank, text in self.begun.items():
            yield Line(text, self.number, rank)
        self.begun.clear()

    def _unlabelled(self, text: str, number: int, rank: int | None) -> Line:
        if self.begun and rank is None and (len(self.begun) == 1 or not text):
            # The end of the one line that is open; of several, a bare line feed ends the oldest.
            rank = next(iter(self.begun))
        self.rank = rank
        return Line(text if rank is None else self.begun.pop(rank, "") + text, number, rank)

    def _cut(self, text: str, number: int, rank: int | None) -> list[Line]:
        """What precedes a label: no end of a line."""
        if not text:
            return []
        if rank is None and len(self.begun) == 1:
            rank = next(iter(self.begun))
        if rank is None:
            return [Line(text, number, None)]
        text = self.begun.pop(rank, "") + text
        if len(text) > _LONGEST:
            return [Line(text, number, rank)]
        self.begun[rank] = text
        return []
