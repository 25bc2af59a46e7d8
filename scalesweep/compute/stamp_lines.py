"""Lines of the stamps' protocol (docs/reference/stamps.md), found in what a program has printed.

A line is ``@spans``, a checksum that may be left out, and a JSON object. Standard library only:
the launcher reads them on compute nodes.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute.log_lines import MARKER, DamagedPackError, Line, read_lines
from scalesweep.compute.log_metrics import UnreadableError, log_files
from scalesweep.compute.torch_labels import labels_of

# What a line begins with, or is cut after; other text names the marker, as a path or a sentence.
_BEGUN = re.compile(r"\{|[0-9a-f]{8} |[0-9a-f]{1,8}(\[|\s*$)")


SEALED = re.compile(r"([0-9a-f]{8}) (?=\{)")
_decode = json.JSONDecoder().raw_decode


def parsed_stamp(text: str, sealed: "re.Match[str] | None") -> dict[str, Any] | None:
    """The object of a stamp, of the text behind its marker; None where it is not whole or differs
    from its checksum (``sealed``: the match of SEALED)."""
    start = sealed.end() if sealed else 0
    try:
        fields, end = _decode(text, start)
    except (ValueError, RecursionError):
        return None
    if type(fields) is not dict:
        return None
    if sealed and zlib.crc32(text[start:end].encode(errors="replace")) != int(sealed[1], 16):
        return None
    return fields


class StampLine(NamedTuple):
    """What a line says, the rank that printed it (None: not known), and where it stands."""

    fields: dict[str, Any]
    rank: int | None
    file: str
    number: int

    @property
    def place(self) -> str:
        """``line 12 of stdout.log``."""
        return f"line {self.number} of {self.file}"


class Damage:
    """Lines that are not whole: how many, and where the first is; how many that are have no
    checksum, so that it is not known whether they are; and how many name the marker only, which
    are no damage where all others have a checksum."""

    def __init__(self) -> None:
        self.lines = 0
        self.unsealed = 0
        self.first = ""
        self.named = 0
        self.first_named = ""

    def add(self, text: str, file: str, number: int) -> None:
        """Count another one, with this ``text`` behind the marker."""
        where = f"line {number} of {file}"
        if _BEGUN.match(text):
            self.lines += 1
            self.first = self.first or where
        else:
            self.named += 1
            self.first_named = self.first_named or where


def stamp_lines(
    source: str, work: Path, ranks: int, srun_labels: bool, damage: Damage
) -> Iterator[StampLine]:
    """The lines in ``source`` (stdout, stderr or files in ``work``), in the order of each file.

    The rank is what the line says, else its label, else its file where there are as many files as
    ranks. Lines that are cut or mixed with others are counted in ``damage``. Raises UnreadableError
    where no file is there, or what is there cannot be read to its end; LogsGoneError, OSError.
    """
    files = log_files(source, work)
    if not files:
        raise UnreadableError(f"stamps: no file '{source}' in {work.name}")
    for index, path in enumerate(files):
        name = str(path.relative_to(work))
        own = index if len(files) == ranks else None
        try:
            yield from _of_file(path, name, own, _Labels(path, ranks, srun_labels), damage)
        except DamagedPackError as error:
            raise UnreadableError(f"stamps: {name}: {error.strerror}") from None


class _Labels:
    """The labels of a file, looked for when the first line names no rank itself."""

    def __init__(self, path: Path, ranks: int, srun_labels: bool) -> None:
        self._what = path, ranks, srun_labels
        self.srun_labels = srun_labels
        self._of: Callable[[Line], tuple[str, int | None]] | None = None

    def rank_of(self, line: Line) -> int | None:
        """The rank that a line's label names."""
        if line.rank is None and self._of is None:
            self._of = labels_of(*self._what).of
        return line.rank if self._of is None else self._of(line)[1]


def _of_file(
    path: Path, name: str, own: int | None, labels: _Labels, damage: Damage
) -> Iterator[StampLine]:
    for line in read_lines(path, labels.srun_labels):
        text = line.text
        if (at := text.find(MARKER)) < 0:
            continue
        # Another rank may have begun its line within this one.
        for part in text[at + len(MARKER) :].split(MARKER):
            sealed = SEALED.match(part)
            fields = parsed_stamp(part, sealed)
            if fields is None:
                damage.add(part, name, line.number)
                continue
            damage.unsealed += sealed is None
            rank = fields.get("rank")
            if rank is None:
                rank = labels.rank_of(line)
                rank = own if rank is None else rank
            elif type(rank) is not int:
                raise UnreadableError(
                    f"stamps: line {line.number} of {name}: rank is {str(rank)[:40]!r}, no number"
                )
            yield StampLine(fields, rank, name, line.number)
