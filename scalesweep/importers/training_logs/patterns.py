r"""Patterns of lines, with short names for what programs print.

``<ms>`` is a group of a number (``1,786``, ``0.5``, ``1e-3``, ``11.5K``), ``<step:i>`` of a whole
number, ``<loss:w>`` of a word without spaces; all else is as in ``re``.
"""

import re

_KINDS = {
    "": r"\d[\d,]{0,24}(?:\.\d{0,25})?(?:[eE][+-]?\d{1,3})?[KMGBTP]?",
    "i": r"\d[\d,]{0,24}",
    "w": r"[^\s,|]{1,80}",
}
_GROUP = re.compile(r"(?<!\?P)<(?P<name>[a-z_]+)(?::(?P<kind>[iw]))?>")


def line(*parts: str) -> re.Pattern[str]:
    """The pattern of a line, of all parts one after the other."""
    return re.compile(_GROUP.sub(_group, "".join(parts)))


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match['name']}>{_KINDS[match['kind'] or '']})"
