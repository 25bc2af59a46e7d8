"""Tables of a page: their cells, with what each is sorted by (``cells.html.j2`` writes them)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.core.formatting import finite


@dataclass(frozen=True)
class Text:
    """A cell of a table: what is shown, and what it is sorted by (numbers: all their digits)."""

    text: str
    order: str | None = None
    kind: str = ""  # class


def number_cell(value: float, text: str, kind: str = "num") -> Text:
    """A number with all its digits to sort by, and a missing one with none."""
    return Text(text, repr(float(value)) if finite(value) else "", kind)


def unbroken(text: str) -> str:
    """Text of a cell that may break before an interval only, as in ``tables.js``."""
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
) -> dict[str, Any]:
    """What the template makes a table of; ``of`` rows there are in all, of which ``more`` tells
    what they are and the file that has them."""
    left_out = max(of - len(rows), 0)
    content = {"label": label, "headings": head, "rows": rows, "left_out": left_out}
    return content | {"noun": more[0], "file": more[1]}
