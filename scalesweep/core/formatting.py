"""How numbers, units and names are written in figures, findings and the report."""

import json
import math
import re
import sys
from collections.abc import Sequence
from typing import Any, TypeGuard

PHASES = {"init": "first epoch", "later": "later epochs", "run": "whole run"}
SIGNIFICANT = 4
_LARGEST = sys.float_info.max
_COMMA = re.compile(r",(?!\d{3}(?!\d))")
_PLAIN = frozenset({int, str, bool, type(None)})


def finite(value: Any, *more: Any) -> TypeGuard[float]:
    """Whether every value is a finite number (None, NaN and text are not)."""
    for number in (value, *more):  # a loop: this is asked of every number of a report
        if not isinstance(number, (int, float)) or isinstance(number, bool):
            return False
        if not -_LARGEST <= number <= _LARGEST:  # integers may be larger, which have no float
            return False
    return True


def plain(value: Any) -> Any:
    """One spelling for a parameter value, whether from JSON or from a table.

    NumPy scalars become Python's, whole floats become ints, lists become compact JSON text and
    missing values become None, so that values from the plan and from Parquet compare equal.
    """
    if type(value) in _PLAIN:  # nearly all are
        return value
    if isinstance(value, (list, dict)):
        return json.dumps(value, separators=(",", ":"))
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer() and abs(value) < 1e15:
            return int(value)
    return value


def text_of(value: Any) -> str:
    """A parameter value as readers see it: values that differ read differently, up to 15 digits."""
    value = plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.15g}"


def written(value: Any) -> str:
    """A parameter value as its user writes it in YAML."""
    return "null" if value is None else text_of(value)


def shorten(text: str, limit: int) -> str:
    """``text`` cut to ``limit`` characters, the cut shown."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def apart(texts: Sequence[str], limit: int) -> list[str]:
    """The texts cut to ``limit`` characters, or to as many more as keep unequal ones unequal."""
    different, longest = len(set(texts)), max(map(len, texts), default=0)
    while limit < longest and len({shorten(text, limit) for text in texts}) < different:
        limit += 4
    return [shorten(text, limit) for text in texts]


def _decimals(value: float, digits: int) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    return digits - 1 - math.floor(math.log10(abs(value)))


# An interval that reaches so many times as far as its value says nothing.
_FAR = 100.0


def _fixed(value: float, decimals: int) -> str:
    if value != 0 and (abs(value) >= 1e9 or abs(value) < 1e-4):
        return f"{value:.3g}"
    return f"{round(value, decimals):z,.{max(decimals, 0)}f}"


def number(value: Any, digits: int = 3) -> str:
    """A number with ``digits`` significant digits (whole parts are never rounded away)."""
    if not finite(value):
        return "–"
    return _fixed(value, max(0, min(_decimals(value, digits), 6)))


def as_given(value: Any) -> str:
    """A number with at most ``SIGNIFICANT`` significant digits, and no more than it has.

    A log that says 47.5 does not say 47.50.
    """
    text = number(value, SIGNIFICANT)
    if not finite(value) or "e" in text or "e" in repr(float(value)):
        return text
    # 0.403 that was 40.3 / 100 is 0.40299999999999997.
    own = len(repr(float(f"{value:.12g}")).partition(".")[2].rstrip("0"))
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:own]}" if fraction[:own] else whole


def says_nothing(value: float, low: float, high: float) -> bool:
    """Whether a positive value may as well be a hundred times as large, and next to nothing: as of
    a few repeats that are powers of ten apart."""
    return low >= 0 and high > _FAR * value > 0


def with_interval(value: Any, low: Any, high: Any, unit: str = "") -> str:
    """``value [low, high] unit`` with as many decimals as the interval allows.

    The last digit is at most a third of the interval's width, and the first of the value. Without
    an interval only the value is given; of one that says nothing that it is not known.
    """
    tail = f" {unit}" if unit else ""
    if not finite(value):
        return "–"
    if not finite(low, high):
        return as_given(value) + tail
    if says_nothing(value, low, high):
        return f"{number(value)}{tail} (interval not known)"
    width = max(high - low, abs(value) * 1e-3)
    decimals = max(0, min(max(_decimals(width / 3, 1), _decimals(value, 1)), 6))
    body = f"{_fixed(value, decimals)} [{_fixed(low, decimals)}, {_fixed(high, decimals)}]"
    return body + tail


def percent(value: Any, low: Any = None, high: Any = None) -> str:
    """A share as ``78.2 %`` or ``78.2 [77.9, 78.6] %``, with digits as ``with_interval``."""
    if not finite(value):
        return "–"
    if not finite(low, high):
        return f"{100 * value:z.1f} %"
    if says_nothing(value, low, high):
        return f"{100 * value:.0f} % (interval not known)"
    width = max(100 * (high - low), 0.1)
    decimals = max(0, min(_decimals(width / 3, 1), 2))
    v, lo, hi = (f"{100 * x:z.{decimals}f}" for x in (value, low, high))
    return f"{v} [{lo}, {hi}] %"


def scaled_unit(unit: str, largest: float) -> tuple[float, str]:
    """Factor and unit that bring ``largest`` into a readable range (decimal prefixes for bytes,
    joules, watts, FLOP and FLOP/s, words for parameters)."""
    prefixes = {1e15: "P", 1e12: "T", 1e9: "G", 1e6: "M", 1e3: "k", 1.0: ""}
    name = unit
    if unit.startswith("bytes") and largest > 0:
        name = f"B{unit.removeprefix('bytes')}"
    elif unit == "parameters":
        prefixes = {1e9: "billion ", 1e6: "million "}
    elif unit not in ("J", "W", "J s", "FLOP", "FLOP/s"):
        return 1.0, unit
    for factor, prefix in prefixes.items() if finite(largest) else ():
        if largest >= factor:
            return 1 / factor, prefix + name
    return 1.0, name


def size_words(size: float) -> str:
    """A message size: 64 B, 4 KiB, 256 MiB."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size:g} B"


def duration(seconds: Any, missing: str = "–") -> str:
    """A duration for people: 0.42 s, 45 s, 3 min 20 s, 2 h 05 min; ``missing`` for none."""
    if not finite(seconds):
        return missing
    if seconds < 59.5:
        return f"{number(seconds, 2)} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 run``, ``3 runs``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def listed(items: list[str], limit: int = 4) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b, c and 5 more``.

    Names that hold commas, other than those of thousands, are parted by semicolons.
    """
    comma = "; " if any(map(_COMMA.search, items)) else ", "
    if len(items) > limit:
        items = [*items[: limit - 1], f"{len(items) - limit + 1} more"]
    if len(items) < 2:
        return "".join(items)
    last = f"{comma.rstrip() if comma == '; ' else ''} and {items[-1]}"
    return comma.join(items[:-1]) + last
