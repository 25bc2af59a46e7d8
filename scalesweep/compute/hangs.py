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
# Where a rank waits for all others, and frameworks whose graphs may do so.
_WAITING = re.compile(
    r".*/(?:horovod/|torch/distributed/)"
    r"|.*harness/ranks\.py:\d+ (?:barrier|gather\w*|mean_over_ranks)$"
)
_FRAMEWORKS = {"/tensorflow/": "TensorFlow", "/keras/": "TensorFlow", "/torch/": "PyTorch"}
_BELOW = " < "  # between a line and the one that called it
_OWN_FRAMES, _TOLD_FRAMES, _LONGEST = 4, 2, 60
_MOST_GROUPS, _MOST_TOLD, _MOST_HOSTS = 20, 3, 3
# States of ranks, the less likely culprits first.
WAITS, IN_FRAMEWORK, ELSEWHERE, NO_STACK, ABSENT = range(5)
_NO_STACK = "left no stack (killed, stopped or out of reach)"
_NOTHING = "left nothing (never started, or has ended)"

Place = tuple[int, str]  # a state, and where the rank is in words


class Standing(NamedTuple):
    """Where a rank was when its time was up; ``still_s``: since when it had not got further."""

    rank: int | None
    place: Place
    host: str | None = None
    phase: str | None = None
    still_s: float = math.inf


class Group(NamedTuple):
    """Ranks that were in the same place."""

    place: Place
    members: list[Standing]

    def __str__(self) -> str:
        """``ranks 0,2-5 (hosts a, b; phase timed) are in ...``."""
        numbers, hosts, phases = self.numbers, self.values("host"), self.values("phase")
        # No numbers: the launcher gave ranks none, and their framework had not yet.
        who = f"rank{self.plural} {_short(numbers)}" if numbers else self.counted
        about = [f"{len(hosts)} hosts"] if len(hosts) > _MOST_HOSTS else []
        if 0 < len(hosts) <= _MOST_HOSTS:
            about = [f"host{'s' * (len(hosts) > 1)} {', '.join(hosts)}"]
        about += [f"phase {phases[0]}"] if len(phases) == 1 else []
        who += f" ({'; '.join(about)})" if about else ""
        return f"{who} {self.whereabouts}"

    @property
    def whereabouts(self) -> str:
        """``is in ...`` or ``waits in ...``, with the innermost lines only."""
        state, where = self.place
        if state >= NO_STACK:
            return where
        verbs = ("waits", "wait") if state == WAITS else ("is", "are")
        return f"{verbs[bool(self.plural)]} in {_BELOW.join(where.split(_BELOW)[:_TOLD_FRAMES])}"

    @property
    def plural(self) -> str:
        """``s`` of several ranks."""
        return "s" * (len(self.members) != 1)

    @property
    def counted(self) -> str:
        """``2 ranks``."""
        return f"{len(self.members)} rank{self.plural}"

    @property
    def numbers(self) -> str:
        """``0,2-5``; empty if not known of all."""
        known = {each.rank for each in self.members if each.rank is not None}
        return cpu_set(known) if len(known) == len(self.members) else ""

    def values(self, name: str) -> list[str]:
        """Hosts or phases of the ranks."""
        return list(dict.fromkeys(value for m in self.members if (value := getattr(m, name))))

    def entry(self) -> dict[str, Any]:
        """The group in failure.json."""
        phases = self.values("phase")
        still_s = min(each.still_s for each in self.members)
        return {
            "ranks": self.numbers,
            "count": len(self.members),
            "where": self.place[1],
            "phase": phases[0] if len(phases) == 1 else None,
            "still_s": round(still_s, 3) if math.isfinite(still_s) else None,
        }


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
    standings = [standing for path in sorted(work.glob(FILES)) if (standing := read(path, limit_s))]
    if not standings:
        return Verdict(Cause.TIMEOUT, f"not done after its time limit of {limit_s:g} s", [])
    dumped = sum(1 for each in standings if each.place[0] < NO_STACK)
    seen = f"stacks of {dumped} of {ranks} ranks in {work.name}/{FILES}"
    still_s = min(each.still_s for each in standings)
    numbers = {each.rank for each in standings}
    absent: list[int | None] = [None] * (ranks - len(standings))
    if None not in numbers:
        absent = [rank for rank in range(ranks) if rank not in numbers]
    standings += [Standing(rank, (ABSENT, _NOTHING)) for rank in absent]
    by_place: dict[Place, list[Standing]] = {}
    for each in standings:
        by_place.setdefault(each.place, []).append(each)
    places = [Group(place, members) for place, members in by_place.items()]
    suspects = suspected(places)
    others = [place for place in places if place not in suspects]
    groups = [*suspects, *sorted(others, key=lambda place: -len(place.members))]
    listed = [place.entry() for place in groups[:_MOST_GROUPS]]
    if rest := groups[_MOST_GROUPS:]:
        members = [each for place in rest for each in place.members]
        listed.append(Group((ELSEWHERE, f"{len(rest)} more places"), members).entry())
    limit = f"time limit of {limit_s:g} s"
    if still_s < STILL_SHARE * limit_s:
        detail = f"not done after its {limit}, but made progress {_seconds(still_s)} before"
        return Verdict(Cause.TIMEOUT, detail, listed)
    said = f"no rank made progress during the last {_seconds(still_s)} of its {limit}"
    return Verdict(Cause.HANG, f"{said}; {_summary(groups, len(suspects))}; {seen}", listed)


def read(path: Path, limit_s: float) -> Standing | None:
    """What a rank's file says; None if its head is not whole."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.read(_HEAD_BYTES))
            file.seek(max(_HEAD_BYTES, path.stat().st_size - _STACK_BYTES))
            stacks = file.read(_STACK_BYTES).decode(errors="replace")
        rank, phase = head["rank"], head["phase"]
        further_s = float(head["further_s"])
        if not math.isfinite(further_s):
            return None
        return Standing(
            None if rank is None else int(rank),
            _place(_FRAME.findall(_of_thread(stacks, head["main_thread"]))),
            str(head["host"]),
            None if phase is None else str(phase),
            max(0.0, limit_s - further_s),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _of_thread(stacks: str, main_thread: str) -> str:
    """The stack of the main thread, or the last one if it is not there."""
    parts = re.split(r"^(?:Current thread|Thread) (0x[0-9a-f]+)", stacks, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(main_thread, parts[-1])


def _place(frames: Sequence[tuple[str, str, str]]) -> Place:
    """The state of a rank by its frames (path, line, function), innermost first.

    By the program's own lines: inside of one call of a library ranks may be in several places.
    """
    if not frames:
        return NO_STACK, _NO_STACK
    lines = [f"{path}:{line} {function}" for path, line, function in frames]
    depth = next((n for n, line in enumerate(lines) if not _INSTALLED.match(line)), len(lines))
    every = [line for line in lines if not _INSTALLED.match(line)]
    # Not by what every program begins with.
    own = ([line for line in every if not _AROUND.match(line)] or every)[:_OWN_FRAMES]
    words = [_frame(line) for line in own]
    # Frames of the harness around a framework's calls are between it and ``harness/ranks.py``.
    if any(map(_WAITING.match, [*lines[:depth], *own[:1], *_below_own(lines, own)])):
        return WAITS, _BELOW.join(words) or _frame(lines[0])
    for part, name in _FRAMEWORKS.items():
        if any(part in line for line in lines[:depth]):
            return IN_FRAMEWORK, _BELOW.join([name, *words])
    return ELSEWHERE, _BELOW.join([*map(_frame, lines[: min(depth, 1)]), *words])


def _below_own(lines: Sequence[str], own: Sequence[str]) -> Sequence[str]:
    """The frames inside of the first that is told."""
    return lines[: lines.index(own[0])] if own else []


def _frame(line: str) -> str:
    """``harness/ranks.py:50 barrier`` of a line with its whole path."""
    path, _, rest = line.rpartition(":")
    inner = _INSTALLED.sub("", path).strip("/").split("/")
    if _INSTALLED.match(line):
        inner = [inner[0], "...", inner[-1]] if len(inner) > 3 else inner
    else:
        inner = inner[-2:]
    number, _, function = rest.partition(" ")
    return f"{_short('/'.join(inner))}:{number} {_short(function)}"


def suspected(groups: Sequence[Group]) -> list[Group]:
    """The ranks that the others wait for, as far as that can be determined; none if it cannot.

    That is whoever left no stack, or is not in a collective while others may be: a rank inside of
    its framework may wait in a collective of a graph. Else the odd ones out.
    """
    for least in (ELSEWHERE, NO_STACK):
        odd = [group for group in groups if group.place[0] >= least]
        if 0 < len(odd) < len(groups):
            return sorted(odd, key=lambda group: (-group.place[0], len(group.members)))
    if any(group.place[0] >= NO_STACK for group in groups):
        return []
    # The smaller group; of equal ones that which is not known to wait.
    sizes = sorted((len(group.members), -group.place[0]) for group in groups)
    if len(sizes) < 2 or sizes[0] == sizes[1]:
        return []
    return [group for group in groups if (len(group.members), -group.place[0]) == sizes[0]]


def _summary(groups: Sequence[Group], suspects: int) -> str:
    """Which ranks are where, in a line; the first ``suspects`` of the groups are suspected."""
    named = suspects or len(groups)
    text = ", ".join(map(str, groups[: min(named, _MOST_TOLD)]))
    if named > _MOST_TOLD:
        text += f", others in {named - _MOST_TOLD} more places"
    if not suspects:
        return text
    first, *rest = groups[named:]
    return f"{text}, while {first.counted} {first.whereabouts}{' or elsewhere' if rest else ''}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
