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
# A run hangs if no rank got further for this share of its limit. A program that has a step, epoch
# or phase in less is never taken for one that hangs; one that stopped in the last quarter is taken
# for a slow one, and shows that it hangs when it gets more time.
STILL_SHARE = 0.25

_HEAD_BYTES = 512
# Of the stacks the end is read: faulthandler writes the main thread's last.
_STACK_BYTES = 1 << 16
_THREAD = re.compile(r"^(?:Current thread|Thread) (0x[0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_INSTALLED = re.compile(r".*/(?:site-packages|dist-packages|lib(?:64)?/python\d[\d.]*)/")
# The harness's functions in which a rank waits for all others; so it does in _COLLECTIVES.
_TOGETHER = frozenset({"barrier", "gather", "gather_json", "mean_over_ranks"})
# The harness's modules for a framework's ranks, which only ``harness/ranks.py`` calls, and those
# that a benchmark puts around calls of its framework to time them.
_OF_FRAMEWORK = re.compile(r".*/(?:harness/[a-z]+_ranks|torch_training/stamps)\.py$")
# Parts of paths by which a rank is in a collective, and frameworks whose graphs may have some.
_COLLECTIVES = ("/horovod/", "/torch/distributed/")
_FRAMEWORKS = {"/tensorflow/": "TensorFlow", "/keras/": "TensorFlow", "/torch/": "PyTorch"}
# Of the harness: what calls the program, and what the program is called by.
_LEADING = ("/harness/program.py", "/harness/frame.py")
_BELOW = " < "  # between a line and the one that called it
_OWN_FRAMES, _TOLD_FRAMES, _MAX_NAME = 4, 2, 60
_MAX_GROUPS, _MAX_LISTED, _MAX_NUMBERS, _MAX_HOSTS = 20, 3, 60, 3

# States of ranks, the less likely culprits first.
WAITS, IN_FRAMEWORK, ELSEWHERE, NO_STACK, ABSENT = range(5)
_NO_STACKS = {
    NO_STACK: "left no stack (killed, stopped or out of reach)",
    ABSENT: "left nothing (never started, or has ended)",
}


class Frame(NamedTuple):
    """A line of a stack."""

    path: str
    line: str
    function: str

    @property
    def own(self) -> bool:
        """Whether it is in a file of the program's, not installed, Python's own or made up."""
        return not self.path.startswith("<") and not _INSTALLED.match(self.path)

    @property
    def outermost(self) -> bool:
        """Whether it only leads to a program's main function."""
        return self.function == "<module>" or self.path.endswith(_LEADING)

    def __str__(self) -> str:
        """``harness/ranks.py:50 barrier``."""
        parts = _INSTALLED.sub("", self.path).split("/")
        if self.own:
            parts = parts[-2:]
        elif len(parts) > 3:
            parts = [parts[0], "...", parts[-1]]
        path = _shortened("/".join(filter(None, parts)), _MAX_NAME)
        return f"{path}:{self.line} {_shortened(self.function, _MAX_NAME)}"


class Standing(NamedTuple):
    """Where a rank was when its time was up."""

    rank: int | None
    host: str | None = None
    phase: str | None = None
    still_s: float = math.inf  # how long it had not got further
    frames: tuple[Frame, ...] = ()  # of the main thread, innermost first; none: no stack


class Group(NamedTuple):
    """Ranks that were in the same place."""

    level: int
    where: str
    members: tuple[Standing, ...]

    def __str__(self) -> str:
        """``rank 1 (host a; phase timed) is in ...``."""
        return f"{self.who} {self.place}"

    @property
    def place(self) -> str:
        """``is in ...`` or ``waits in ...``, with the innermost lines only."""
        if self.level in _NO_STACKS:
            return self.where
        single = len(self.members) == 1
        verb = (
            ("waits" if single else "wait") if self.level == WAITS else ("is" if single else "are")
        )
        where = _BELOW.join(self.where.split(_BELOW)[:_TOLD_FRAMES])
        return f"{verb} in {where}"

    @property
    def who(self) -> str:
        """``ranks 0,2-5 (hosts a, b; phase timed)``."""
        ranks, hosts, phases = self.numbers, self._values("host"), self._values("phase")
        single = len(self.members) == 1
        # No numbers: the launcher gave ranks none, and their framework had not yet.
        who = (
            f"rank{'' if single else 's'} {_shortened(ranks, _MAX_NUMBERS)}"
            if ranks
            else self.counted
        )
        about = []
        if len(hosts) > _MAX_HOSTS:
            about.append(f"{len(hosts)} hosts")
        elif hosts:
            about.append(f"host{'' if len(hosts) == 1 else 's'} {', '.join(hosts)}")
        if len(phases) == 1:
            about.append(f"phase {phases[0]}")
        return f"{who} ({'; '.join(about)})" if about else who

    @property
    def counted(self) -> str:
        """``2 ranks``."""
        return f"{len(self.members)} rank{'' if len(self.members) == 1 else 's'}"

    @property
    def numbers(self) -> str:
        """``0,2-5``; empty if not known of all."""
        known = [each.rank for each in self.members if each.rank is not None]
        return cpu_set(set(known)) if len(known) == len(self.members) else ""

    def _values(self, name: str) -> list[str]:
        return list(dict.fromkeys(value for m in self.members if (value := getattr(m, name))))

    def entry(self) -> dict[str, Any]:
        """The group in failure.json."""
        phases = self._values("phase")
        still_s = min(each.still_s for each in self.members)
        return {
            "ranks": self.numbers,
            "count": len(self.members),
            "where": self.where,
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
    dumped = sum(1 for each in standings if each.frames)
    still_s = min(each.still_s for each in standings)
    seen = f"stacks of {dumped} of {ranks} ranks in {work.name}/{FILES}"
    return conclude(group(standings, ranks), still_s, limit_s, seen)


def conclude(places: Sequence[Group], still_s: float, limit_s: float, seen: str) -> Verdict:
    """Judge a run by the places of its ranks, of which none got further for ``still_s``, at its
    time limit; ``seen``: what says so."""
    limit = f"time limit of {limit_s:g} s"
    suspects = suspected(places)
    others = [place for place in places if not any(place is each for each in suspects)]
    groups = [*suspects, *sorted(others, key=lambda place: -len(place.members))]
    listed = [place.entry() for place in groups[:_MAX_GROUPS]]
    if rest := groups[_MAX_GROUPS:]:
        members = tuple(each for place in rest for each in place.members)
        listed.append(Group(ELSEWHERE, f"{len(rest)} more places", members).entry())
    still = f"{still_s:.0f}" if still_s >= 10 else f"{still_s:.1f}"
    if still_s < STILL_SHARE * limit_s:
        detail = f"not done after its {limit}, but made progress {still} s before"
        return Verdict(Cause.TIMEOUT, detail, listed)
    said = (
        f"no rank made progress during the last {still} s of its {limit}",
        _summary(groups, len(suspects)),
        seen,
    )
    return Verdict(Cause.HANG, "; ".join(said), listed)


def read(path: Path, limit_s: float) -> Standing | None:
    """What a rank's file says; None if its head is not whole."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.read(_HEAD_BYTES))
            file.seek(max(_HEAD_BYTES, path.stat().st_size - _STACK_BYTES))
            stacks = file.read(_STACK_BYTES).decode(errors="replace")
        rank, phase = head["rank"], head["phase"]
        still_s = limit_s - float(head["further_s"])
        if not math.isfinite(still_s):
            return None
        return Standing(
            rank=None if rank is None else int(rank),
            host=str(head["host"]),
            phase=None if phase is None else str(phase),
            still_s=max(0.0, still_s),
            frames=_main_frames(stacks, head["main_thread"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _main_frames(stacks: str, main_thread: str) -> tuple[Frame, ...]:
    """The frames of the main thread, or of the last one if it is not there."""
    threads: dict[str, list[Frame]] = {"": []}
    current = ""
    for line in stacks.splitlines():
        if match := _THREAD.match(line):
            current = match[1]
            threads[current] = []
        elif match := _FRAME.match(line):
            threads[current].append(Frame(*match.groups()))
    return tuple(threads.get(main_thread, threads[current]))


def group(standings: Sequence[Standing], ranks: int) -> list[Group]:
    """The ranks by where they were; those that left nothing are a group, too."""
    by_place: dict[tuple[int, str], list[Standing]] = {}
    for each in standings:
        by_place.setdefault(_place(each.frames), []).append(each)
    numbers = {each.rank for each in standings}
    absent = [Standing(rank) for rank in range(ranks) if rank not in numbers]
    if None in numbers:
        absent = [Standing(None)] * (ranks - len(standings))
    if absent:
        by_place[ABSENT, _NO_STACKS[ABSENT]] = absent
    return [Group(*place, tuple(members)) for place, members in by_place.items()]


def _place(frames: Sequence[Frame]) -> tuple[int, str]:
    """The state of a rank, and where it is in words.

    By the program's own lines: inside of one call of a library ranks may be in several places.
    """
    if not frames:
        return NO_STACK, _NO_STACKS[NO_STACK]
    frames = [frame for frame in frames if not _OF_FRAMEWORK.match(frame.path)] or frames
    depth = next((n for n, frame in enumerate(frames) if frame.own), len(frames))
    inside, every = frames[:depth], [frame for frame in frames if frame.own]
    # Not by what every program begins with.
    own = ([frame for frame in every if not frame.outermost] or every)[:_OWN_FRAMES]
    paths = [frame.path for frame in inside]
    together = bool(own) and own[0].path.endswith("/harness/ranks.py")
    names = [name for part, name in _FRAMEWORKS.items() if any(part in path for path in paths)]
    waits = any(part in path for part in _COLLECTIVES for path in paths)
    if waits or (together and own[0].function in _TOGETHER):
        level, first = WAITS, []
    elif names:
        level, first = IN_FRAMEWORK, names[:1]
    else:
        level, first = ELSEWHERE, [str(frame) for frame in inside[:1]]
    return level, _BELOW.join([*first, *map(str, own)]) or str(frames[0])


def suspected(groups: Sequence[Group]) -> list[Group]:
    """The ranks that the others wait for, as far as that can be determined; none if it cannot.

    That is whoever left no stack, or is not in a collective while others may be: a rank inside of
    its framework may wait in a collective of a graph. Else the odd ones out.
    """
    gone = [place for place in groups if place.level >= NO_STACK]
    away = [place for place in groups if place.level >= ELSEWHERE]
    for odd in (away, gone):
        if odd and len(odd) < len(groups):
            return sorted(odd, key=lambda place: (-place.level, len(place.members)))
    # The smaller group; of equal ones that which is not known to wait.
    order = sorted(groups, key=lambda place: (len(place.members), -place.level))
    sizes = [(len(place.members), place.level) for place in order]
    return order[:1] if not gone and len(order) > 1 and sizes[0] != sizes[1] else []


def _summary(groups: Sequence[Group], suspects: int) -> str:
    """Which ranks are where, in a line; the first ``suspects`` of the groups are suspected."""
    named = suspects or len(groups)
    text = ", ".join(map(str, groups[:_MAX_LISTED][:named]))
    if named > _MAX_LISTED:
        text += f", others in {named - _MAX_LISTED} more places"
    if not suspects:
        return text
    first, *rest = groups[named:]
    return f"{text}, while {first.counted} {first.place}{' or elsewhere' if rest else ''}"


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."
