"""What a profile of another tool says of a run, whatever tool it was: one typed result.

Times are in seconds, arrays are ``[rank]``. What a tool does not say is None or empty, never 0.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.default_parts import DEFAULT_PARTS, KERNEL_PARTS
from scalesweep.analysis.pop import PopFactors
from scalesweep.analysis.types import Floats

OTHER = "other"
# Time that a tool counted and that an excerpt of its table leaves out.
NOT_LISTED = "(not listed)"
# Kinds of functions whose times contain those of others: no part counts them.
CONTAINING = ("api", "range")
KERNEL = "kernel"
MAX_SEARCHED = 4000  # characters of a name that patterns by default look at
MAX_FUNCTIONS, MAX_NAME = 200, 1000  # functions of a kind that a record keeps; characters of a name


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Per rank: elapsed, useful (neither in MPI nor waiting for it) and MPI time, ``[rank]``."""

    elapsed: Floats
    useful: Floats
    mpi: Floats

    @property
    def runtime(self) -> float:
        """The longest elapsed time."""
        return float(self.elapsed.max())


@dataclass(frozen=True, slots=True)
class Function:
    """Calls of a function (or kernel, or copy) on one rank; ``rank`` None: mean over all ranks.

    ``kind``: cpu, kernel, copy, api or range. Times of api and range contain those of others.
    ``min_s`` and ``max_s``: the shortest and the longest call. What the tool does not say is None.
    """

    name: str
    rank: int | None
    kind: str
    calls: float | None
    exclusive_s: float
    inclusive_s: float | None
    min_s: float | None = None
    max_s: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Collective calls of one size: how many, and the time of one (``std_s``: sample deviation).

    ``of_all_ranks`` is false of calls that are a step of a larger operation, as those within a node
    of a hierarchical allreduce are. ``group`` names the ranks that take part, where the tool has a
    name for them, ``group_ranks`` is how many they are where it says so.
    """

    operation: str
    size: float  # bytes, of all tensors that were fused into the call
    count: int
    mean_s: float
    std_s: float | None = None
    of_all_ranks: bool = True
    group: str = ""
    group_ranks: int | None = None

    @property
    def algorithm_bandwidth(self) -> float:
        """Bytes per second: size / time."""
        return self.size / self.mean_s

    def bus_bandwidth(self, ranks: int) -> float | None:
        """Algorithm bandwidth times what the operation sends: comparable over rank counts.

        None of what is no collective, or where not all ``ranks`` take part in each call.
        """
        taking_part = self.group_ranks or ranks
        factor = bus_factor(self.operation, taking_part) if self.of_all_ranks else None
        return None if factor is None else self.algorithm_bandwidth * factor


# Bus over algorithm bandwidth of n ranks (nccl-tests, doc/PERFORMANCE.md).
_BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "allreduce": lambda n: 2 * (n - 1) / n,
    "reducescatter": lambda n: (n - 1) / n,
    "allgather": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "bcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
}
# Whose call it is, in front of the operation: MPI_Allreduce, NCCL_ALLREDUCE, PMPI_Iallreduce.
_LIBRARY = re.compile(r"p?mpix?_|[a-z]{0,6}ccl_|gloo_|ddl_")
_KINDS = re.compile(r"i?(allreduce|reducescatter|allgather|alltoall|broadcast|bcast|reduce)[vw]?")


def bus_factor(operation: str, ranks: int) -> float | None:
    """Bus over algorithm bandwidth of a collective, whichever library's; None of another call."""
    name = _LIBRARY.sub("", operation.strip().lower(), count=1)
    match = _KINDS.fullmatch(re.sub(r"[^a-z]", "", name).removesuffix("block"))
    return _BUS_FACTORS[match[1]](ranks) if match else None


@dataclass(frozen=True)
class Profile:
    """One run as a tool saw it.

    ``profiled_ranks``: those that the functions are of, where they are not all. ``region``: the
    part of the program that it is about, empty for the whole. ``metrics`` are what
    the tool itself states, as in a record. ``notes`` say what a reader of the numbers should know.
    """

    tool: str
    file: Path
    ranks: int | None = None
    profiled_ranks: int | None = None
    elapsed_s: float | None = None
    region: str = ""
    line: int | None = None
    rank_times: RankTimes | None = None
    factors: PopFactors | None = None
    functions: tuple[Function, ...] = ()
    messages: tuple[Message, ...] = ()
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def parts_of(
    profile: Profile, patterns: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Floats]:
    """Seconds by named part, ``[rank]``: each function belongs to the first part that names it.

    ``patterns``: regular expressions by part, searched in the function's name; without any those
    of ``default_parts``, more of them for kernels than for other functions. What none takes is
    ``other``. A profile of means has one entry for all ranks. Empty without functions. Raises
    re.error for what is no regular expression.
    """
    own = [function for function in profile.functions if function.kind not in CONTAINING]
    if not own:
        return {}
    parts = _Parts(patterns)
    ranks = sorted({function.rank for function in own if function.rank is not None})
    place = {rank: index for index, rank in enumerate(ranks)}
    width = max(len(ranks), 1)
    seconds_of = {part: np.zeros(width) for part in (*parts.names, OTHER)}
    for function in own:
        if ranks and function.rank is None:
            continue  # the mean of what the ranks say themselves
        seconds_of[parts.of(function)][
            place[function.rank] if function.rank is not None else 0
        ] += function.exclusive_s
    return {part: seconds for part, seconds in seconds_of.items() if seconds.any()}


def function_entries(
    profile: Profile, patterns: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """The functions of a profile as a record keeps them, those of one kind by falling own time.

    Calls and times are means over the ranks, ``min_s`` and ``max_s`` those of the shortest and the
    longest call on any rank, ``share`` is of the own time of all functions of the kind, those
    beyond MAX_FUNCTIONS of it included. Functions of one name are one entry where several ranks
    have them; names that a tool has cut stay entries of their own in a profile without ranks.
    """
    functions = _functions_of_ranks(profile)
    whole: dict[str, float] = {}
    for function in functions:
        whole[function.kind] = whole.get(function.kind, 0.0) + function.exclusive_s
    parts = _Parts(patterns)
    entries: list[dict[str, Any]] = []
    for kind, seconds in whole.items():
        alike = [function for function in functions if function.kind == kind]
        for function in sorted(alike, key=lambda it: -it.exclusive_s)[:MAX_FUNCTIONS]:
            entries.append(
                {
                    "name": function.name[:MAX_NAME],
                    "kind": kind,
                    "part": None if kind in CONTAINING else parts.of(function),
                    "calls": None if function.name == NOT_LISTED else function.calls,
                    "own_s": function.exclusive_s,
                    "total_s": function.inclusive_s,
                    "min_s": function.min_s,
                    "max_s": function.max_s,
                    "share": function.exclusive_s / seconds if seconds > 0 else None,
                }
            )
    return entries


def _functions_of_ranks(profile: Profile) -> list[Function]:
    """Functions as means over the ranks, without a rank."""
    ranks = {function.rank for function in profile.functions} - {None}
    if not ranks:
        return list(profile.functions)
    alike: dict[tuple[str, str], list[Function]] = {}
    for function in profile.functions:
        if function.rank is not None:
            alike.setdefault((function.kind, function.name), []).append(function)
    count = len(ranks)
    return [
        Function(
            name,
            None,
            kind,
            _mean([function.calls for function in functions], count),
            sum(function.exclusive_s for function in functions) / count,
            _mean([function.inclusive_s for function in functions], count),
            min((f.min_s for f in functions if f.min_s is not None), default=None),
            max((f.max_s for f in functions if f.max_s is not None), default=None),
        )
        for (kind, name), functions in alike.items()
    ]


def _mean(values: Sequence[float | None], count: int) -> float | None:
    """The mean over ranks, of which some have none of it; None where any says nothing."""
    known = [value for value in values if value is not None]
    return sum(known) / count if len(known) == len(values) else None


class _Parts:
    """Which part each function belongs to: the first one of whose patterns is in its name."""

    def __init__(self, patterns: Mapping[str, Sequence[str]] | None) -> None:
        kernels = patterns or KERNEL_PARTS
        self.names = tuple(kernels)
        self._patterns = {True: _compiled(kernels), False: _compiled(patterns or DEFAULT_PARTS)}
        self._known: dict[tuple[bool, str], str] = {}
        self._searched = None if patterns else MAX_SEARCHED

    def of(self, function: Function) -> str:
        """The part of a function; ``other`` of what no pattern takes."""
        key = function.kind == KERNEL, function.name
        if key not in self._known:
            texts = self._patterns[key[0]].items()
            name = function.name[: self._searched]
            self._known[key] = next(
                (part for part, text in texts if any(it.search(name) for it in text)), OTHER
            )
        return self._known[key]


def _compiled(patterns: Mapping[str, Sequence[str]]) -> dict[str, list["re.Pattern[str]"]]:
    return {part: [re.compile(text) for text in texts] for part, texts in patterns.items()}
