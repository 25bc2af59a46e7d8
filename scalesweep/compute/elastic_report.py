"""What torchrun reports of the ranks that failed (torch.distributed.elastic, ChildFailedError).

Each node's agent prints a report: the failure that it saw first, and others. Standard library only.
"""

import re
import signal
from collections.abc import Iterable
from typing import NamedTuple

_ROOT, _OTHERS = "Root Cause (first observed failure):", "Failures:"
_FIELD = re.compile(r"  (?P<name>time|host|rank|exitcode) {0,9}: (?P<value>\S+)")


class RankEnd(NamedTuple):
    """How ranks ended: exit code or signal, one of which is None; ``ranks`` as Slurm lists them."""

    ranks: str
    node: str
    code: int | None
    signal: int | None


def read_report(lines: Iterable[str]) -> list[RankEnd]:
    """The ranks that failed by themselves, those first that an agent saw first; none without a
    report."""
    entries: list[tuple[bool, dict[str, str]]] = []
    inside, root = False, False
    for line in lines:
        text = line.strip()
        if text.endswith("ChildFailedError:"):
            inside = True
        elif text in (_ROOT, _OTHERS):
            root = text == _ROOT
        elif inside and (field := _FIELD.match(line)):
            if field["name"] == "time" or not entries:
                entries.append((root, {}))
            entries[-1][1].setdefault(field["name"], field["value"])
    entries.sort(key=lambda entry: (not entry[0], entry[1].get("time", "")))
    ends = [_end(entry) for _, entry in entries]
    return [end for end in ends if end is not None and end.signal != signal.SIGTERM]


def _end(entry: dict[str, str]) -> RankEnd | None:
    rank, code = entry.get("rank", ""), entry.get("exitcode", "")
    if not rank.isdecimal() or not re.fullmatch(r"-?\d{1,3}", code):
        return None
    number = int(code)
    known = (None, -number) if number < 0 else (number, None)
    if known[1] is not None and known[1] not in signal.valid_signals():
        return None
    return RankEnd(rank, entry.get("host", ""), *known)
