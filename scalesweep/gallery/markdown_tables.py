"""Tables of a Markdown file as one CSV file, with what the words above them say."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.gallery.source_text import read_source_text

SECTION = "section"  # the column that every table gets: the headings that it stands under
_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_HEADING = re.compile(r"(#{1,6}) +(.*)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class MarkdownTable:
    """A table: the headings that it stands under (``Results > Table 1``), the line of words next
    above it, its columns and rows."""

    section: str
    words: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_tables(path: Path) -> Iterator[MarkdownTable]:
    """The tables of a file, in order. Raises UserError if it is no text or too large."""
    text = read_source_text(path)
    lines = text.splitlines()
    headings: list[str] = []
    words, at = "", 0
    while at < len(lines):
        line = lines[at]
        if (
            "|" in line
            and at + 1 < len(lines)
            and "|" in lines[at + 1]
            and _RULE.fullmatch(lines[at + 1])
        ):
            columns = cells(line)
            end = at + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
            rows = tuple(cells(lines[n]) for n in range(at + 2, end))
            yield MarkdownTable(
                " > ".join(filter(None, headings)), words, _told_apart(columns), rows
            )
            words, at = "", end
            continue
        if match := _HEADING.match(line):
            level = len(match[1])
            headings = [*[*headings, *[""] * level][: level - 1], match[2].strip("# ")]
            words = ""
        elif line.strip():
            words = line.strip()
        at += 1


def cells(line: str) -> tuple[str, ...]:
    """The cells of a line, without marks of emphasis, code and links."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    plain = (re.sub(r"\*\*|`", "", cell).strip() for cell in re.split(r"(?<!\\)\|", inner))
    return tuple(_LINK.sub(r"\1", cell) for cell in plain)


def _told_apart(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of one name get numbers: ``x``, ``x 2``."""
    return tuple(
        name if (before := columns[:at].count(name)) == 0 else f"{name} {before + 1}"
        for at, name in enumerate(columns)
    )


def tables_as_csv(path: Path, only: str | None, patterns: Mapping[str, str]) -> str:
    """All tables of a file as one CSV text: their columns together, the headings above each, and
    what ``patterns`` (column -> pattern with a group) find in headings and
    words above. ``only``: a pattern that these must match.

    A row with more cells than columns, or a table without a pattern's column, is left empty there.
    Raises UserError if there is no table.
    """
    tables = [
        table
        for table in read_tables(path)
        if not only or re.search(only, f"{table.section}\n{table.words}")
    ]
    columns = [SECTION, *patterns]
    columns += dict.fromkeys(
        name for table in tables for name in table.columns if name not in columns
    )
    if not any(table.rows for table in tables):
        which = f" that matches {only!r}" if only else ""
        raise UserError(f"{path}: has no table of Markdown{which}")
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for table in tables:
        above = f"{table.section}\n{table.words}"
        said = {SECTION: table.section}
        for name, pattern in patterns.items():
            if match := re.search(pattern, above):
                said[name] = match[1]
        for row in table.rows:
            writer.writerow({**said, **dict(zip(table.columns, row, strict=False))})
    return out.getvalue()
