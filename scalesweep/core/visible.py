"""Text of others on its way out: what a reader would not see is shown as an escape.

Programs' output, names in imported files, host names and values of parameters may hold terminal
sequences, which recolour, erase or retitle, and bidirectional controls, which show a text in
another order than it has. Records and Parquet keep them; whatever is printed, and every CSV, page,
figure and LaTeX table, goes through ``visible``.
"""

import re
import sys
from typing import Any, TextIO

# Unicode 15: control characters but for tab and line feed (Cc), line and paragraph separators (Zl,
# Zp), surrogates (Cs), noncharacters, and format characters (Cf) that have no picture, among them
# all bidirectional controls and tags.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""A text with every character that cannot be seen as an escape: ``\x1b``, ``\u202e``.

    Tabs and ends of lines stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return INVISIBLE.sub(_escape, text)


def _escape(match: "re.Match[str]") -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode()


class VisibleStream:
    """A text stream that writes what is visible; all else is the stream's."""

    def __init__(self, stream: TextIO) -> None:
        """Write to ``stream``."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text as ``visible`` has it."""
        return self._stream.write(visible(text))

    def __getattr__(self, name: str) -> Any:
        """Whatever else the stream has."""
        return getattr(self._stream, name)


def print_visibly() -> None:
    """Have this process print what is visible only, on standard output and standard error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, VisibleStream):
            setattr(sys, name, VisibleStream(stream))
