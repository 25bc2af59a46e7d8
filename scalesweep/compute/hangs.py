"""What to make of a run whose time was up: was it slow, or did it hang, and which rank held it up.

Programs in the harness leave a file per rank (``workflow/benchmarks/harness/watch.py``): who it is,
when it last got further, and the stacks of its threads shortly before the time limit. Standard
library only, for the launcher.
"""

import contextlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.core.causes import Cause
from scalesweep.core.host import cpu_set

FILES = "stacks-*.txt"
# A run hangs if no rank got further for this share of its limit: one that stopped in the last
# quarter is taken for a slow one, and shows that it hangs when it gets more time.
STILL_SHARE = 0.25
_HEAD_BYTES = 512
_STACK_BYTES = 1 << 16  # of the end: faulthandler writes the main thread's last
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$', re.MULTILINE)
_INSTALLED = re.compile(r"<|.*/(?:site-packages|dist-packages|lib(?:64)?/python\d[\d.]*)/")
# Of the harness: what calls the program, and a framework's ranks below ``harness/ranks.py``.
_AROUND = re.compile(
    r".*/(?:harness/(?:program|frame|[a-z]+_ranks)|torch_training/stamps)\.py:|.* <module>$"
)
# Where a rank waits for all others, and frameworks, whose graphs may do so.
_WAITING = re.compile(
    r".*/(?:horovod/|torch/distributed/)"
    r"|.*harness/ranks\.py:\d+ (?:barrier|gather\w*|mean_over_ranks)$"
)
_FRAMEWORKS = {"/tensorflow/": "TensorFlow", "/keras/": "TensorFlow", "/torch/": "PyTorch"}
_BELOW = " < "  # between a line and the one that called it
_TOLD_FRAMES, _MOST_GROUPS, _MOST_TOLD = 2, 20, 3
_NO_STACK = "left no stack (killed, stopped or out of reach)"
_NOTHING = "left nothing (never started, or has ended)"


class Standing(NamedTuple):
    """Where a rank was when its time was up, in words; whether it waits for others there (None: no
    stack says so); ``still_s``: since when it had not got further."""

    rank: int | None
    where: str
    waits: bool | None
    host: str = ""
    phase: str | None = None
    still_s: float = math.inf


class Verdict(NamedTuple):
    """Cause and detail of a run that was ended at its time limit, and where its ranks were."""

    cause: str
    detail: str
    groups: list[dict[str, Any]]


def remove(work: Path) -> None:
    """Remove what killed ranks have left of a run that did not reach its limit."""
    for path in work.glob(FILES):
        with contextlib.suppress(OSError):
            path.unlink()


def judge(work: Path, limit_s: float, ranks: int) -> Verdict:
    """Judge a run of so many ranks that was ended at its time limit, by its attempt's folder.

    A program that leaves no such files is not known to hang.
    """
    standings = [each for path in sorted(work.glob(FILES)) if (each := _read(path, limit_s))]
    if not standings:
        return Verdict(Cause.TIMEOUT, f"not done after its time limit of {limit_s:g} s", [])
    dumped = sum(each.waits is not None for each in standings)
    seen = f"stacks of {dumped} of {ranks} ranks in {work.name}/{FILES}"
    still_s = min(each.still_s for each in standings)
    known = {each.rank for each in standings}
    absent: list[int | None] = [rank for rank in range(ranks) if rank not in known]
    if None in known:
        absent = [None] * (ranks - len(standings))
    by_place: dict[tuple[str, bool | None], list[Standing]] = {}
    for each in (*standings, *(Standing(rank, _NOTHING, None) for rank in absent)):
        by_place.setdefault((each.where, each.waits), []).append(each)
    groups = sorted(by_place.values(), key=lambda group: -len(group))
    suspects = _suspected(groups)
    groups = [*suspects, *(group for group in groups if group not in suspects)]
    listed = [_entry(group) for group in groups[:_MOST_GROUPS]]
    limit = f"time limit of {limit_s:g} s"
    if still_s < STILL_SHARE * limit_s:
        detail = f"not done after its {limit}, but made progress {_seconds(still_s)} before"
        return Verdict(Cause.TIMEOUT, detail, listed)
    said = f"no rank made progress during the last {_seconds(still_s)} of its {limit}"
    return Verdict(Cause.HANG, f"{said}; {_summary(groups, len(suspects))}; {seen}", listed)


def _read(path: Path, limit_s: float) -> Standing | None:
    """What a rank's file says; None if its head is not whole."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.read(_HEAD_BYTES))
            file.seek(max(_HEAD_BYTES, path.stat().st_size - _STACK_BYTES))
            stacks = file.read(_STACK_BYTES).decode(errors="replace")
        # The stack of the main thread, or the last one if it is not there.
        parts = re.split(r"^(?:Current thread|Thread) (0x[0-9a-f]+)", stacks, flags=re.MULTILINE)
        threads = dict(zip(parts[1::2], parts[2::2], strict=True))
        where, waits = _place(_FRAME.findall(threads.get(head["main_thread"], parts[-1])))
        further_s = float(head["further_s"])
        if not math.isfinite(further_s):
            return None
        still_s = max(0.0, limit_s - further_s)
        rank = None if head["rank"] is None else int(head["rank"])
        return Standing(rank, where, waits, str(head["host"]), head["phase"], still_s)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(frames: Sequence[tuple[str, str, str]]) -> tuple[str, bool | None]:
    """Where a rank is by its frames (path, line, function), innermost first; whether it may wait.

    By the program's own lines: inside of one call of a library ranks may be in several places.
    """
    if not frames:
        return _NO_STACK, None
    lines = [f"{path}:{line} {function}" for path, line, function in frames]
    every = [line for line in lines if not _INSTALLED.match(line)]
    # Not by what every program begins with.
    own = [line for line in every if not _AROUND.match(line)] or every
    inside = lines[: lines.index(own[0]) + 1] if own else lines
    if any(map(_WAITING.match, inside)):
        return _BELOW.join(map(_short_frame, own[:4] or lines[:1])), True
    for part, name in _FRAMEWORKS.items():
        if any(part in line for line in inside):
            return _BELOW.join([name, *map(_short_frame, own[:4])]), True
    return _BELOW.join(map(_short_frame, [*lines[: lines[0] not in own], *own[:4]])), False


def _short_frame(line: str) -> str:
    """``harness/ranks.py:50 barrier`` of a line with its whole path."""
    path, _, rest = line.rpartition(":")
    inner = _INSTALLED.sub("", path).strip("/").split("/")
    if not _INSTALLED.match(line):
        inner = inner[-2:]
    elif len(inner) > 3:
        inner = [inner[0], "...", inner[-1]]
    return f"{'/'.join(inner)}:{rest}"


def _suspected(groups: Sequence[list[Standing]]) -> list[list[Standing]]:
    """The ranks that the others wait for, as far as that can be determined; none if it cannot.

    That is whoever left no stack, or waits in no collective while others may. Else the fewest.
    """
    odd = sorted((g for g in groups if not g[0].waits), key=lambda g: (g[0].waits is False, len(g)))
    if 0 < len(odd) < len(groups):
        return odd
    silent = [group for group in groups if group[0].waits is None]
    if silent and len(silent) < len(groups):
        return silent
    sizes = sorted(map(len, groups))
    return [groups[-1]] if len(sizes) > 1 and sizes[0] < sizes[1] else []


def _ranks(group: Sequence[Standing]) -> str:
    """``0,2-5``; empty if not known of all: the launcher gave ranks no numbers."""
    known = {each.rank for each in group if each.rank is not None}
    return cpu_set(known) if len(known) == len(group) else ""


def _entry(group: Sequence[Standing]) -> dict[str, Any]:
    """A group in failure.json."""
    phases = {each.phase for each in group}
    still_s = min(each.still_s for each in group)
    return {
        "ranks": _ranks(group),
        "count": len(group),
        "where": group[0].where,
        "phase": group[0].phase if len(phases) == 1 else None,
        "still_s": round(still_s, 3) if math.isfinite(still_s) else None,
    }


def _summary(groups: Sequence[Sequence[Standing]], suspects: int) -> str:
    """Which ranks are where, in a line; the first ``suspects`` of the groups are suspected."""
    named, rest = groups[: suspects or len(groups)], groups[suspects or len(groups) :]
    text = ", ".join(_in_words(group) for group in named[:_MOST_TOLD])
    if rest:
        count, more = len(rest[0]), " or elsewhere" if rest[1:] else ""
        text += f", while {count} rank{'s' * (count > 1)} {_whereabouts(rest[0])}{more}"
    return text


def _in_words(group: Sequence[Standing]) -> str:
    """``ranks 0,2-5 (hosts a, b; phase timed) are in ...``."""
    numbers, plural = _ranks(group), "s" * (len(group) > 1)
    hosts = list(dict.fromkeys(each.host for each in group if each.host))
    phases = {each.phase for each in group if each.phase}
    about = [f"host{'s' * (len(hosts) > 1)} {', '.join(hosts[:_MOST_TOLD])}"] if hosts else []
    about += [f"phase {phase}" for phase in phases] if len(phases) == 1 else []
    who = f"rank{plural} {numbers}" if numbers else f"{len(group)} rank{plural}"
    who += f" ({'; '.join(about)})" if about else ""
    return f"{who} {_whereabouts(group)}"


def _whereabouts(group: Sequence[Standing]) -> str:
    """``is in ...`` or ``waits in ...``, with the innermost lines only."""
    _, where, waits, *_ = group[0]
    if waits is None:
        return where
    inside = where.startswith(tuple(_FRAMEWORKS.values()))  # computing, or waiting
    verbs = ("waits", "wait") if waits and not inside else ("is", "are")
    return f"{verbs[len(group) > 1]} in {_BELOW.join(where.split(_BELOW)[:_TOLD_FRAMES])}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
