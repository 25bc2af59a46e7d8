"""Ranks whose memory the site limits (``memory_limit_gib_per_rank``), and how a run ends by that.

``workflow/launchers/limited_rank.sh`` sets the limit in front of each rank. A program that gets no
more memory says so in words that depend on what asked for it: PyTorch's allocator, C++, Python,
OpenBLAS, the loader of shared libraries before the first line of the program. Where the last words
of a failed run speak of memory the limit is the cause; where they do not, only that there was one
is said. Standard library only, for the launcher.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from scalesweep.core.causes import Cause

# Not what else uses up: "Resource temporarily unavailable" is of too many threads, too.
_OF_MEMORY = re.compile(
    r"cannot allocate memory|can't allocate memory|not enough memory|out of memory"
    r"|memory exhausted|memory allocation (?:still )?failed|\bMemoryError\b|bad_alloc\b"
    r"|unable to allocate [\d.]+ [KMGT]?i?B|cannot map zero-fill pages"
    r"|failed to map segment from shared object(?!: operation not permitted)"
    r"|cannot create shared object descriptor",
    re.IGNORECASE,
)
_ASKED = re.compile(r"you tried to allocate (\d{1,18}) bytes")  # PyTorch's DefaultCPUAllocator
_SIZE = r"(\d{1,12}(?:\.\d{1,2})?) (bytes|[KMGT]iB)"
# PyTorch's allocator on a GPU; sizes are rounded to hundredths of their unit.
_OF_GPU = {
    "asked_bytes": re.compile(rf"Tried to allocate {_SIZE}"),
    "held_bytes": re.compile(rf"{_SIZE} (?:is allocated by PyTorch|already allocated)"),
    "device_bytes": re.compile(rf"{_SIZE} total capacity|total capacity of {_SIZE}"),
}
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_MOST = 200  # characters of a line that is shown
# What a program of the harness says of its memory in native_error.json, in bytes.
_SAID = ("asked_bytes", "held_bytes")
# Causes that say no more than that a program ended.
_OPEN = (Cause.NON_ZERO_EXIT, Cause.KILLED)


def size_text(amount: int) -> str:
    """Bytes as GiB or MiB, whichever is shorter to read: ``1.5 GiB``, ``400 MiB``."""
    return f"{amount / 2**30:.4g} GiB" if amount >= 2**30 else f"{amount / 2**20:.4g} MiB"


def under_limit(detail: str, limit_bytes: int) -> str:
    """The detail of a failure, with the limit that was there whether or not it is the cause."""
    return f"{detail} (under the site's limit of {size_text(limit_bytes)} a rank)"


def judged(cause: str, detail: str, lines: Iterable[str], limit_bytes: int) -> tuple[str, str]:
    """Cause and detail of a program that failed while each rank had a limit of so many bytes.

    ``lines``: the last ones that it printed.
    """
    limit = f"the site's limit of {size_text(limit_bytes)} a rank"
    if cause == Cause.OUT_OF_MEMORY:
        return cause, f"{detail}, under {limit}"
    if cause not in _OPEN:
        return cause, detail
    words = next((line for line in reversed([*lines]) if _OF_MEMORY.search(line)), "")
    if not words:
        return cause, under_limit(detail, limit_bytes)
    shown = " ".join(words.split())
    shown = shown if len(shown) <= _MOST else f"{shown[: _MOST - 3]}..."
    return Cause.OUT_OF_MEMORY, f"no memory for the program, under {limit}: {shown}"


def gpu_memory_facts(detail: str) -> dict[str, int]:
    """What failure.json says of a program that ran out of a GPU's memory, by PyTorch's words in
    ``detail``, in bytes: ``asked_bytes`` for which there was no room, ``held_bytes`` in the tensors
    of the rank by then, ``device_bytes`` of the GPU. What they do not say is left out."""
    facts = {}
    for name, pattern in _OF_GPU.items():
        if match := pattern.search(detail):
            number, unit = (part for part in match.groups() if part is not None)
            facts[name] = round(float(number) * _UNITS[unit])
    return facts


def memory_facts(detail: str, said: Mapping[str, Any], limit_bytes: int | None) -> dict[str, int]:
    """What failure.json says of a program that ran out of memory, in bytes: ``limit_bytes`` of a
    rank, ``asked_bytes`` for which there was no room, ``held_bytes`` that the rank had by then.

    ``said``: what the program left in native_error.json. What is not known is left out.
    """
    facts = {} if limit_bytes is None else {"limit_bytes": limit_bytes}
    if asked := _ASKED.search(detail):
        facts["asked_bytes"] = int(asked[1])
    return facts | {
        name: value
        for name in _SAID
        if isinstance(value := said.get(name), int) and not isinstance(value, bool) and value > 0
    }
