"""Names of nodes as Slurm abbreviates them: ``node[1-3,07],login``.

Standard library only: jobs expand the list of their own nodes, which Slurm gives them in a
variable, and need not ask its controller.
"""

import itertools
import re
from collections.abc import Iterator

_PART = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_MOST = 1_000_000  # names: beyond that the list is no machine's


def expand(names: str) -> tuple[str, ...]:
    """The names of a list of nodes in their order (Slurm's ``scontrol show hostnames``).

    What is not in that form is taken as it is written.
    """
    hosts: list[str] = []
    for part in _PART.findall(names):
        choices = [_choices(ranges) if ranges else [text] for ranges, text in _PIECE.findall(part)]
        hosts += itertools.islice(
            ("".join(parts) for parts in itertools.product(*choices)), _MOST - len(hosts)
        )
    return tuple(hosts)


def _choices(ranges: str) -> list[str]:
    """What a pair of brackets stands for: numbers that keep the leading zeros of the first."""
    return [name for part in ranges.split(",") for name in _numbers(part)]


def _numbers(part: str) -> Iterator[str]:
    match = _RANGE.fullmatch(part.strip())
    if match is None:
        yield part
        return
    first, last = match[1], match[2] or match[1]
    for number in range(int(first), min(int(last), int(first) + _MOST) + 1):
        yield f"{number:0{len(first)}}"


def joined(*lists: str) -> str:
    """Several lists of nodes as one, in which each name is once."""
    parts: list[str] = []
    seen: set[str] = set()
    for names in lists:
        every = expand(names)
        new = [name for name in every if name not in seen]
        seen.update(new)
        if new:
            parts.append(names if len(new) == len(every) else ",".join(new))
    return ",".join(parts)
