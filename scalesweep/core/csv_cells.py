"""Cells of the CSV files that we write, safe to open in a spreadsheet, and read back.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, and carries
it out (CWE-1236). A text that begins so gets an apostrophe in front, and so does one that begins
with an apostrophe, so that reading restores every text. Numbers stay numbers.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from scalesweep.core.visible import visible

_MARK = "'"
# Also what spreadsheets skip in front of a formula.
_FORMULA = re.compile("['\t\n ]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|['\t]")
# What begins so and is none.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)?")


class _File(Protocol):
    def write(self, text: str, /) -> Any: ...


def cell(value: Any) -> Any:
    """A value as a cell has it: text is visible and no formula, all else as it is."""
    if not isinstance(value, str):
        return value
    text = visible(value)
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return _MARK + text
    return text


def text_of_cell(text: str) -> str:
    """The text that ``cell`` was given, where all of it is visible."""
    plain = text[1:]
    return plain if text[:1] == _MARK and cell(plain) == text else text


class CsvWriter:
    """``csv.writer`` of safe cells, with ``\\n`` at the ends of lines."""

    def __init__(self, file: _File) -> None:
        """Write to ``file``."""
        self._writer = csv.writer(file, lineterminator="\n")

    def writerow(self, row: Iterable[Any]) -> None:
        """Write a row."""
        self._writer.writerow([cell(value) for value in row])


def read_rows(file: Iterable[str], columns: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """Rows of a CSV file as ``CsvWriter`` wrote it; raises csv.Error.

    With ``columns`` there are none unless these are the file's, and none that is not whole.
    """
    reader = csv.DictReader(file)
    if columns and tuple(reader.fieldnames or ()) != tuple(columns):
        return
    for row in reader:
        if columns and None in row.values():
            continue
        yield {name: text_of_cell(value) for name, value in row.items() if isinstance(value, str)}
