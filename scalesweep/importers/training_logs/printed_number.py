"""Numbers as training programs print them: commas between thousands, K to P behind them."""

import math
import re

_NUMBER = re.compile(
    r"(?P<digits>[+-]?(?:\d{1,3}(?:,\d{3}){1,6}|\d{1,20})(?:\.\d{0,20})?)"
    r"(?P<power>[eE][+-]?\d{1,3})?(?P<suffix>[KMGBTP]?)",
    re.ASCII,
)
_SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}


def number_of(text: str) -> float:
    """The number that a text is; NaN for one that is none (``nan``, ``N/A``)."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    digits = match["digits"].replace(",", "") + (match["power"] or "")
    return float(digits) * _SUFFIXES[match["suffix"]]


def rounding_of(text: str) -> float:
    """By how much the number behind a printed text may differ from it: half of its last digit."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return 0.0
    decimals = len(match["digits"].partition(".")[2])
    power = int(match["power"][1:]) if match["power"] else 0
    return float(0.5 * 10.0 ** (power - decimals) * _SUFFIXES[match["suffix"]])
