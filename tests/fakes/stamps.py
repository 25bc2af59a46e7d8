"""Lines of stamps as programs print them, of arrays ``[step, rank]`` in s."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

UNIX = 1_795_000_000.0
SPANS = ("input", "compute", "communication")


def line(sealed: bool = True, **fields: Any) -> str:
    text = json.dumps(fields, separators=(",", ":"))
    seal = f"{zlib.crc32(text.encode()):08x} " if sealed else ""
    return f"@spans {seal}{text}\n"


def lines_of(arrays: Mapping[str, Any], sealed: bool = True, **fields: Any) -> list[list[str]]:
    """The lines of each step, by rank; ``fields`` are added to each, lists by step."""
    times = arrays["step_times"]
    begins = UNIX + (times + arrays.get("span_between", 0)).cumsum(axis=0) - times

    def of(step: int, rank: int) -> str:
        spans = {n: round(float(arrays[f"span_{n}"][step, rank]), 7) for n in SPANS}
        begin, seconds = round(begins[step, rank], 6), round(float(times[step, rank]), 7)
        more = {n: it[step] if isinstance(it, list) else it for n, it in fields.items()}
        return line(sealed, rank=rank, step=step, begin=begin, s=seconds, spans=spans, **more)

    return [[of(step, rank) for rank in range(times.shape[1])] for step in range(len(times))]
