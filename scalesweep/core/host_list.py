"""Names of nodes as Slurm abbreviates them: ``node[1-3,07],login``.

Standard library only: jobs expand the list of their own nodes, which Slurm gives them in a
variable, and need not ask its controller.
"""

import itertools
import re

_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def expand(names: str) -> tuple[str, ...]:
    """The names of a list of nodes in their order (Slurm's ``scontrol show hostnames``).

    What is not in that form is taken as it is written.
    """
    hosts: list[str] = []
    for part in _PART.findall(names):
        choices = [
            [name for piece in ranges.split(",") for name in _numbers(piece)] if ranges else [text]
            for ranges, text in _PIECE.findall(part)
        ]
        hosts += ["".join(parts) for parts in itertools.product(*choices)]
    return tuple(hosts)


def _numbers(piece: str) -> list[str]:
    """What a piece in brackets stands for: numbers that keep the leading zeros of the first."""
    match = _RANGE.fullmatch(piece.strip())
    if match is None:
        return [piece]
    first, last = match[1], match[2] or match[1]
    return [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
