"""Tables of a page: their cells, with what each is sorted by (``cells.html.j2`` writes them)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalesweep.core.formatting import finite


@dataclass(frozen=True)
class Target:
    """An address with its text; ``rows``: the table whose rows with the values of ``key`` it
    leads to."""

    text: str
    href: str
    rows: str = ""
    key: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Text:
    """A cell of a table: what is shown, and what it is sorted by (numbers: all their digits);
    ``name`` of a heading is that of its parameter, by which rows are looked for."""

    text: str
    order: str | None = None
    kind: str = ""  # class
    links: Sequence[Target] = ()
    name: str = ""


def number_cell(value: Any, text: str, kind: str = "num") -> Text:
    """A number with all its digits to sort by, and a missing one with none."""
    return Text(text, repr(float(value)) if finite(value) else "", kind)


def unbroken(text: str) -> str:
    """Text of a cell that may break before an interval only."""
    return re.sub(r" (?!\[)", "\N{NO-BREAK SPACE}", text)


def headings(*words: str, numbers: Sequence[str] = ()) -> list[Text]:
    """The headings of a table; those of ``numbers`` are aligned with them."""
    return [Text(word, None, "num" if word in numbers else "") for word in words]


def table(
    label: str,
    head: Sequence[Text],
    rows: Sequence[Sequence[Text]],
    of: int = 0,
    more: tuple[str, str] = ("row", ""),
    name: str = "",
) -> dict[str, Any]:
    """What the template makes a table of; ``of`` rows there are in all, of which ``more`` tells
    what they are and the file that has them; ``name`` is its id on the page."""
    left_out = max(of - len(rows), 0)
    content = {"label": label, "headings": head, "rows": rows, "left_out": left_out, "name": name}
    return content | {"noun": more[0], "file": more[1]}
