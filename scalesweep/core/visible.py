"""Text of others on its way out: what a reader would not see is shown as an escape.

Programs' output, names in imported files, host names and values of parameters may hold terminal
sequences, which recolour, erase or retitle, and bidirectional controls, which show a text in
another order than it has. Records and tables keep them; errors and log lines, and every page,
figure and LaTeX table, go through ``visible``.
"""

import re

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
    return INVISIBLE.sub(lambda it: it[0].encode("unicode_escape", "surrogatepass").decode(), text)
