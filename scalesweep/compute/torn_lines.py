"""Text of stamps (docs/reference/stamps.md), and lines that a stamp was written into.

A stamp comes out of a thread of the program, past its buffer: it may come in the middle of a line
that the program prints. Standard library only: the launcher reads logs on compute nodes.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from scalesweep.compute.log_lines import Line

MARKER = "@spans "
SEALED = re.compile(r"([0-9a-f]{8}) (?=\{)")
# Characters of a line that is put together: a program may print dots and never end its line.
_LONGEST = 1 << 16
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


Labelled = tuple[str, int | None, Line]  # text without labels, rank, the line itself


def put_together(lines: Iterable[Labelled], ranks: int) -> Iterator[Labelled]:
    """Lines, of which those that a stamp with a checksum came into are whole again.

    What precedes the stamp is the begin of the next line of its rank. Where it is not known which
    of several ranks printed a line, it stays as it is.
    """
    begun: dict[int | None, Line] = {}
    for text, rank, line in lines:
        at = text.find(MARKER)
        if at >= 0 and (rank is not None or ranks == 1) and _is_whole(text[at + len(MARKER) :]):
            if at:
                before = begun.pop(rank, line._replace(text=""))
                if len(before.text) + at > _LONGEST:
                    yield before.text, rank, before
                    before = line._replace(text="")
                begun[rank] = before._replace(text=before.text + text[:at])
            stamp = line._replace(text=text[at:])
            yield stamp.text, rank, stamp
        elif rank in begun:
            before = begun.pop(rank)
            whole = before._replace(text=before.text + text)
            yield whole.text, rank, whole
        else:
            yield text, rank, line
    for rank, line in begun.items():
        yield line.text, rank, line


def _is_whole(text: str) -> bool:
    sealed = SEALED.match(text)
    return sealed is not None and parsed_stamp(text, sealed) is not None
