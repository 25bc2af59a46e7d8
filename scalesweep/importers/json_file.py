"""Result files of JSON that are one object, read whole and within bounds."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.log_lines import PACKED, open_packed
from scalesweep.importers.imported_run import ImportRefusedError

MOST_BYTES = 64 << 20
_LEAST, _MOST = 1e-150, 1e150


def plain_file_name(file: Path) -> str:
    """A file's name without the ending of gzip or xz."""
    name = file.name
    for end in PACKED:
        name = name.removesuffix(end)
    return name


def read_object(file: Path) -> dict[str, Any]:
    """The object in a file, packed or not.

    Raises ImportRefusedError if it is too large or no object of JSON; OSError if it cannot be read.
    """
    with open_packed(file) as unpacked:
        data = unpacked.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ImportRefusedError(f"more than {MOST_BYTES:,} bytes")
    try:
        content = json.loads(data, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        raise ImportRefusedError("not JSON: cut or damaged?") from None
    if not isinstance(content, dict):
        raise ImportRefusedError(f"a {type(content).__name__} of JSON, not an object")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; raises ImportRefusedError where a key comes twice: one would be lost."""
    content = dict(pairs)
    if len(content) < len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ImportRefusedError(f"the key {key[:40]!r} comes twice")
    return content


def number_in(content: Mapping[str, Any], key: str, least: float = -math.inf) -> float | None:
    """A finite number above ``least``; None where the key is not there or null.

    Raises ImportRefusedError where it is anything else.
    """
    value = content.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_size(value):
        raise ImportRefusedError(f"{key} {str(value)[:30]!a} is not a number")
    if value <= least:
        raise ImportRefusedError(f"{key} {value:g} is not above {least:g}")
    return float(value)


def count_in(content: Mapping[str, Any], key: str) -> int | None:
    """A whole number above 0; None where the key is not there, null or -1 (no limit).

    Raises ImportRefusedError where it is anything else.
    """
    value = number_in(content, key)
    if value is None or value in (-1, 0):
        return None
    if value != int(value) or not 0 < value < 2**53:
        raise ImportRefusedError(f"{key} {value:g} is not a whole number")
    return int(value)


def metric(value: float, unit: str, better: str, scope: str = "total") -> dict[str, Any]:
    """A metric of a record."""
    return {"value": value, "unit": unit, "better": better, "scope": scope}


def _is_size(value: float) -> bool:
    """Whether a number is none beyond what is measured: its ratios are finite, too."""
    return value == 0 or _LEAST < abs(value) < _MOST
