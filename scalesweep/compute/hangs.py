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

from scalesweep.compute.program import Failure
from scalesweep.core.causes import Cause
from scalesweep.core.host import cpu_set

FILES = "stacks-*.json"
# A run hangs if no rank got further for this share of its limit: one that stopped in the last
# quarter is taken for a slow one, and shows that it hangs when it gets more time.
STILL_SHARE = 0.25
_INSTALLED = re.compile(r"<|.*/(?:site-packages|dist-packages|lib(?:64)?/python\d[\d.]*)/")
# Of the harness: what calls the program, and a framework's ranks below ``harness/ranks.py``.
_AROUND = re.compile(
    r".*/(?:harness/(?:program|frame|[a-z]+_ranks)|torch_training/stamps)\.py:|.* <module>$"
)
# Where a rank waits for all others, or may do so in a framework's graph.
_WAITING = re.compile(
    r".*/(?:horovod|tensorflow|keras|torch)/"
    r"|.*harness/ranks\.py:\d+ (?:barrier|gather\w*|mean_over_ranks)$"
)
_BELOW = " < "  # between a line and the one that called it
_TOLD_FRAMES, _MOST_TOLD = 2, 3
# Of one that holds Python's lock in C the thread that writes stacks does not run.
_NO_STACK = "left no stack (killed, stopped, has ended or is in C with Python's lock)"
_NOTHING = "left nothing (never started)"


class Standing(NamedTuple):
    """Where a rank was when its time was up, in words; whether it waits for others there (None: no
    stack says so); ``still_s``: since when it had not got further."""

    rank: int | None
    where: str
    waits: bool | None
    host: str = ""
    phase: str | None = None
    still_s: float = math.inf


def remove(work: Path) -> None:
    """Remove what killed ranks have left of a run that did not reach its limit."""
    for path in work.glob(FILES):
        with contextlib.suppress(OSError):
            path.unlink()


def judge(work: Path, limit_s: float, ranks: int) -> Failure:
    """Judge a run of so many ranks that was ended at its time limit, by its attempt's folder.

    A program that leaves no such files is not known to hang.
    """
    left = [each for path in sorted(work.glob(FILES)) if (each := _read(path, limit_s))]
    if not left:
        return Failure(Cause.TIMEOUT, f"not done after its time limit of {limit_s:g} s")
    known = {each.rank for each in left}
    absent: list[int | None] = [rank for rank in range(ranks) if rank not in known]
    if None in known:
        absent = [None] * (ranks - len(left))
    by_place: dict[tuple[str, bool | None], list[Standing]] = {}
    for each in (*left, *(Standing(rank, _NOTHING, None) for rank in absent)):
        by_place.setdefault((each.where, each.waits), []).append(each)
    # Those first that the others may wait for: who left no stack, then who is in no collective.
    order = {None: 0, False: 1, True: 2}
    groups = sorted(by_place.values(), key=lambda group: (order[group[0].waits], len(group)))
    listed = {"stacks": [_entry(group) for group in groups]}
    still_s = min(each.still_s for each in left)
    if still_s < STILL_SHARE * limit_s:
        detail = f"not done after its time limit of {limit_s:g} s, but made progress"
        return Failure(Cause.TIMEOUT, f"{detail} {still_s:.3g} s before", listed)
    places = "; ".join(
        [*map(_in_words, groups[:_MOST_TOLD]), *["..."] * (len(groups) > _MOST_TOLD)]
    )
    dumped = sum(each.waits is not None for each in left)
    return Failure(
        Cause.HANG,
        f"no rank made progress during the last {still_s:.3g} s of its time limit of {limit_s:g} s;"
        f" {places}; stacks of {dumped} of {ranks} ranks in {work.name}/{FILES}",
        listed,
    )


def _read(path: Path, limit_s: float) -> Standing | None:
    """What a rank's file says; None if it is not whole."""
    try:
        said = json.loads(path.read_bytes())
        where, waits = _place(said["stacks"][0] if said["stacks"] else [])
        still_s = max(0.0, limit_s - float(said["further_s"]))
        return Standing(said["rank"], where, waits, said["host"], said["phase"], still_s)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(lines: Sequence[str]) -> tuple[str, bool | None]:
    """Where a rank is by its stack (``path:line function``), innermost first; whether it may wait.

    By the program's own lines: inside of one call of a library ranks may be in several places.
    """
    if not lines:
        return _NO_STACK, None
    every = [line for line in lines if not _INSTALLED.match(line)]
    # Not by what every program begins with.
    own = [line for line in every if not _AROUND.match(line)] or every
    inside = lines[: lines.index(own[0]) + 1] if own else lines
    if any(map(_WAITING.match, inside)):
        return _BELOW.join(map(_short_frame, own[:4] or lines[:1])), True
    return _BELOW.join(map(_short_frame, [*lines[: lines[0] not in own], *own[:4]])), False


def _short_frame(line: str) -> str:
    """``harness/ranks.py:50 barrier`` of a line with its whole path."""
    return "/".join(line.split("/")[-2:])


def _entry(group: Sequence[Standing]) -> dict[str, Any]:
    """A group in failure.json; ``ranks`` are empty if the launcher gave them no numbers."""
    known = {each.rank for each in group if each.rank is not None}
    phases = {each.phase for each in group}
    still_s = min(each.still_s for each in group)
    return {
        "ranks": cpu_set(known) if len(known) == len(group) else "",
        "count": len(group),
        "where": group[0].where,
        "phase": group[0].phase if len(phases) == 1 else None,
        "still_s": round(still_s, 3) if math.isfinite(still_s) else None,
    }


def _in_words(group: Sequence[Standing]) -> str:
    """``rank 0,2-5 (host a, b; phase timed): ...``, with the innermost lines only."""
    entry, where = _entry(group), group[0].where
    hosts = dict.fromkeys(each.host for each in group if each.host)
    about = [f"host {', '.join([*hosts][:_MOST_TOLD])}"] if hosts else []
    about += [f"phase {entry['phase']}"] if entry["phase"] else []
    who = f"rank {entry['ranks']}" if entry["ranks"] else f"{len(group)} of the ranks"
    who += f" ({'; '.join(about)})" if about else ""
    return f"{who}: {_BELOW.join(where.split(_BELOW)[:_TOLD_FRAMES])}"
