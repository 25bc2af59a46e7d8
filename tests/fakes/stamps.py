"""Lines of stamps as programs print them, of arrays ``[step, rank]`` in s."""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

UNIX = 1_795_000_000.0
SPANS = ("input", "compute", "communication")


def line(sealed: bool = True, **fields: Any) -> str:
    text = json.dumps(fields, separators=(",", ":"))
    seal = f"{zlib.crc32(text.encode()):08x} " if sealed else ""
    return f"@spans {seal}{text}\n"


def lines_of(arrays: Mapping[str, Any], sealed: bool = True, **fields: Any) -> list[list[str]]:
    """The lines of each step, by rank; ``fields`` are added to each, lists by step."""
    steps, ranks = arrays["step_times"].shape
    between = arrays.get("span_between", np.zeros((steps, ranks)))
    ends = (arrays["step_times"] + between).cumsum(axis=0)
    result = []
    for step in range(steps):
        added = {n: v[step] if isinstance(v, list) else v for n, v in fields.items()}
        result.append(
            [
                line(
                    sealed,
                    rank=rank,
                    step=step,
                    begin=round(UNIX + ends[step, rank] - arrays["step_times"][step, rank], 6),
                    s=round(float(arrays["step_times"][step, rank]), 7),
                    spans={n: round(float(arrays[f"span_{n}"][step, rank]), 7) for n in SPANS},
                    **added,
                )
                for rank in range(ranks)
            ]
        )
    return result
