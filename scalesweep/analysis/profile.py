"""What a profile of another tool says of a run, whatever tool it was: one typed result.

Times are in seconds, arrays are ``[rank]``. What a tool does not say is None or empty, never 0.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from scalesweep.analysis.types import Floats
from scalesweep.core.paths import RESOURCES

OTHER = "other"
# Time that a tool counted and that an excerpt of its table leaves out.
NOT_LISTED = "(not listed)"
# Kinds of functions whose times contain those of others: no part counts them.
CONTAINING = ("api", "range")
KERNEL = "kernel"
MAX_SEARCHED = 4000  # characters of a name that patterns by default look at
# What stands in front of the patterns of resources/parts.yaml, by kind.
_PREFIX = {
    "exact": "", "any_case": "(?i)", "not_fused": r"(?is)^(?!triton_(?:poi|red|per|for)_).*",
}  # fmt: skip
_OF_ANY_PROGRAM = ("mpi", "collectives", "copies")  # the others are of kernels
MAX_FUNCTIONS, MAX_NAME = 200, 1000  # functions of a kind that a record keeps; characters of a name


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Per rank: elapsed, useful (neither in MPI nor waiting for it) and MPI time, ``[rank]``."""

    elapsed: Floats
    useful: Floats
    mpi: Floats


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

    def bus_bandwidth(self, ranks: int) -> float | None:
        """Size over time, times what the operation sends: bytes/s, comparable over rank counts.
        None of what is no collective, or where not all ``ranks`` take part in each call."""
        taking_part = self.group_ranks or ranks
        factor = bus_factor(self.operation, taking_part) if self.of_all_ranks else None
        return None if factor is None else self.size / self.mean_s * factor


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
    region: str = ""
    rank_times: RankTimes | None = None
    functions: tuple[Function, ...] = ()
    messages: tuple[Message, ...] = ()
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


@cache
def usual_parts() -> Mapping[str, Sequence[str]]:
    """The patterns of parts that no benchmark names, in their order (resources/parts.yaml)."""
    parts = yaml.safe_load((RESOURCES / "parts.yaml").read_text())
    return {
        part: [f"{_PREFIX[kind]}(?:{text})" for kind, texts in kinds.items() for text in texts]
        for part, kinds in parts.items()
    }


def parts_of(
    profile: Profile, patterns: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Floats]:
    """Seconds by named part, ``[rank]``: each function belongs to the first part that names it.

    ``patterns``: regular expressions by part, searched in the function's name; without any those
    of ``usual_parts``, more of them for kernels than for other functions. What none takes is
    ``other``. A profile of means has one entry for all ranks. Empty without functions. Raises
    re.error for what is no regular expression.
    """
    own = _functions(profile, patterns)
    own = own[own["part"].notna()]
    if own["rank"].notna().any():
        own = own[own["rank"].notna()]  # a mean is of what the ranks say themselves
    seconds = own.fillna({"rank": 0}).pivot_table("own_s", "part", "rank", "sum", fill_value=0.0)
    order = [part for part in (*(patterns or usual_parts()), OTHER) if part in seconds.index]
    return {part: values for part in order if (values := seconds.loc[part].to_numpy(float)).any()}


def function_entries(
    profile: Profile, patterns: Mapping[str, Sequence[str]] | None = None
) -> list[dict[str, Any]]:
    """The functions of a profile as a record keeps them, those of one kind by falling own time.

    Calls and times are means over the ranks, ``min_s`` and ``max_s`` those of the shortest and the
    longest call on any rank, ``share`` is of the own time of all functions of the kind, those
    beyond MAX_FUNCTIONS of it included. Functions of one name are one entry where several ranks
    have them; names that a tool has cut stay entries of their own in a profile without ranks.
    """
    frame = _functions(profile, patterns)
    if ranks := frame["rank"].nunique():
        frame = frame[frame["rank"].notna()]
        alike = frame.groupby(["kind", "name"], sort=False)
        # A rank may have none of it; where one does not say, nothing is known of the mean.
        means = {n: alike[n].agg(lambda s: s.sum(skipna=False)) / ranks for n in _MEANS}
        ends = {"min_s": alike["min_s"].min(), "max_s": alike["max_s"].max()}
        frame = pd.DataFrame({**means, **ends, "part": alike["part"].first()}).reset_index()
    frame["share"] = frame["own_s"] / frame.groupby("kind")["own_s"].transform("sum")
    frame.loc[frame["name"] == NOT_LISTED, "calls"] = np.nan
    entries = []
    for _, kind in frame.groupby("kind", sort=False):
        shown = kind.sort_values("own_s", ascending=False, kind="stable")[:MAX_FUNCTIONS]
        entries += shown.assign(name=shown["name"].str[:MAX_NAME])[_ENTRY].to_dict("records")
    return [{str(n): None if pd.isna(v) else v for n, v in entry.items()} for entry in entries]


_MEANS = ("calls", "own_s", "total_s")
_ENTRY = ["name", "kind", "part", *_MEANS, "min_s", "max_s", "share"]


def _functions(profile: Profile, patterns: Mapping[str, Sequence[str]] | None) -> pd.DataFrame:
    """A row per function and rank, with the part that it belongs to: the first one of whose
    patterns is in its name; none of what contains others."""
    columns = ["name", "rank", "kind", "calls", "own_s", "total_s", "min_s", "max_s"]
    frame = pd.DataFrame(map(astuple, profile.functions), columns=columns)
    frame = frame.astype(dict.fromkeys(("rank", *columns[3:]), float))
    kernels = {
        part: [re.compile(text) for text in texts]
        for part, texts in (patterns or usual_parts()).items()
    }
    others = kernels if patterns else {part: kernels[part] for part in _OF_ANY_PROGRAM}
    searched = None if patterns else MAX_SEARCHED
    named = {
        (kind, name): next(
            (
                part
                for part, texts in (kernels if kind == KERNEL else others).items()
                if any(text.search(name[:searched]) for text in texts)
            ),
            OTHER,
        )
        for kind, name in {*zip(frame["kind"], frame["name"], strict=True)}
        if kind not in CONTAINING
    }
    keys = zip(frame["kind"], frame["name"], strict=True)
    return frame.assign(part=pd.Series([named.get(key) for key in keys], dtype=object))
