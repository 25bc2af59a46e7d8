"""Reads what cProfile has left, in a process of its own: ``python -I readprofile.py < NAMES``

Such files are marshalled, which runs nothing but trusts what it reads: a damaged one may take all
memory or end the interpreter. Reads names of files with NULs between them and prints a JSON object:
``ranks`` (files that are whole), ``whole`` (seconds of all functions) and of those that took
longest by themselves ``functions``, each [file, line, name, calls, own seconds, seconds with all
that they called], sums over the ranks.
"""

import json
import marshal
import os
import resource
import sys
from pathlib import Path
from typing import Any

MAX_FUNCTIONS = 30
_MEMORY_BYTES, _CPU_S = 2 << 30, 120
_MOST = 1e12  # calls or seconds


def _numbers(path: Path) -> dict[tuple[str, int, str], list[float]]:
    """Calls, own and total seconds by function; raises whatever a damaged file makes it raise."""
    stats = marshal.loads(path.read_bytes())
    by_function = {
        (str(file), int(line), str(name)): [float(calls), float(own), float(total)]
        for (file, line, name), (_, calls, own, total, _) in stats.items()
    }
    if not all(0 <= number < _MOST for numbers in by_function.values() for number in numbers):
        raise ValueError("numbers out of the range of measurements")
    return by_function


def main(files: list[bytes]) -> None:
    """Print the sums over these files."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    sums: dict[tuple[str, int, str], list[float]] = {}
    ranks = 0
    for file in files:
        try:
            by_function = _numbers(Path(os.fsdecode(file)))
        except Exception:  # whatever marshal makes of it: this rank has no profile
            continue
        ranks += 1
        for function, numbers in by_function.items():
            before = sums.get(function, (0.0, 0.0, 0.0))
            sums[function] = [a + b for a, b in zip(before, numbers, strict=True)]
    top = sorted(sums.items(), key=lambda item: -item[1][1])[:MAX_FUNCTIONS]
    found_top: list[list[Any]] = [[*function, *numbers] for function, numbers in top]
    whole = sum(numbers[1] for numbers in sums.values())
    print(json.dumps({"ranks": ranks, "whole": whole, "functions": found_top}))


if __name__ == "__main__":
    main(sys.stdin.buffer.read().split(b"\0"))
