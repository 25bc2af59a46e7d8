"""Who comes late to the collectives of several ranks' traces (``kineto_stream``).

An allreduce (and what else needs the data of all) ends on all ranks at about the same time, however
late the last of them came. So ranks' clocks are aligned by the median difference of these ends, in
blocks of some calls each, which follows clocks that drift. The last to begin is the straggler, and
its time is what the transfer takes without waiting.

Calls are matched within the group of ranks that make them: by the trace's sequence numbers, else by
their order, which tells only where all ranks recorded the same steps and made equally many. Calls
whose ends do not coincide are not the same ones, and are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.analysis.kineto_stream import STEP, Collective, RankTrace
from scalesweep.analysis.trace_account import step_begins
from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import shorten
from scalesweep.core.host import cpu_set

_S = 1e-6
# Operations that end on all ranks together. A root of a broadcast may be done long before.
TOGETHER = ("allreduce", "allgather", "reducescatter", "alltoall", "barrier")
# Of point to point, ranks do not all take part in each call.
NOT_COLLECTIVE = ("send", "recv", "sendrecv", "unknown")
FEW_CALLS = 3  # so few tell no clock
_BLOCK_CALLS, _MOST_BLOCKS = 8, 24
# The ends of a call lie within this share of its time, else the calls are others (median).
_COINCIDE = 0.25
# A rank is named as late if it is the latest in each of PARTS parts of a recording of FEWEST_STEPS
# steps or more, by ERRORS standard errors of these parts, and the last in LAST_SHARE of the calls.
# bench/late_ranks.py simulates how often that is wrong.
PARTS, FEWEST_STEPS, LAST_SHARE, ERRORS = 8, 40, 0.5, 10.0


@dataclass(frozen=True)
class Matched:
    """Calls of a kind on the ``ranks`` that made them: begins and ends ``[call, rank, 2]`` in
    seconds of each rank's own clock, and the step of each call (-1: not known)."""

    kind: Collective
    ranks: tuple[int, ...]
    calls: Floats
    step: NDArray[np.int64]


def matched_calls(traces: Mapping[int, RankTrace]) -> list[Matched]:
    """The calls that several ranks made together, kind by kind."""
    kinds = {kind for trace in traces.values() for kind in trace.calls}
    matched = []
    for kind in sorted(kinds, key=repr):
        ranks = _taking_part(kind, traces)
        if kind.operation in NOT_COLLECTIVE or len(ranks) < 2:
            continue
        each = _same_calls(kind, [traces[rank] for rank in ranks])
        if each is not None and _coincide(each.calls):
            matched.append(replace(each, ranks=ranks))
    return matched


def _taking_part(kind: Collective, traces: Mapping[int, RankTrace]) -> tuple[int, ...]:
    """The ranks whose traces show a kind of call; none where they may be of different groups."""
    if kind.members is not None:
        ranks = [rank for rank in kind.members if rank in traces]
    else:
        ranks = list(traces)
        worlds = {trace.world for trace in traces.values()}
        if worlds not in ({None}, {len(ranks)}) or kind.ranks not in (None, len(ranks)):
            return ()
    return tuple(rank for rank in ranks if kind in traces[rank].calls)


def _same_calls(kind: Collective, traces: Sequence[RankTrace]) -> Matched | None:
    """The calls that all ranks recorded; None where nothing tells which these are."""
    # Newer traces count from a time of their own, which need not be that of the other ranks.
    bases = [trace.base_s - traces[0].base_s for trace in traces]
    every = [trace.calls[kind] for trace in traces]
    tables = [own[["begin", "end"]].to_numpy(float) * _S + base
              for own, base in zip(every, bases, strict=True)]  # fmt: skip
    numbers = [own["number"].to_numpy(int) for own in every]
    events = [trace.events for trace in traces]
    if all((each >= 0).all() and len(np.unique(each)) == len(each) for each in numbers):
        common = reduce(np.intersect1d, numbers)
        orders = [np.flatnonzero(np.isin(each, common)) for each in numbers]
        orders = [o[np.argsort(each[o])] for o, each in zip(orders, numbers, strict=True)]
    elif len({frozenset(own.loc[own["kind"] == STEP, "number"]) for own in events}) == 1:
        orders = [np.argsort(table[:, 0], kind="stable") for table in tables]
    else:
        return None
    tables = [table[order] for table, order in zip(tables, orders, strict=True)]
    if len({len(table) for table in tables}) > 1 or not len(tables[0]):
        return None
    begins = step_begins(traces[0]) * _S
    step = np.searchsorted(begins, tables[0][:, 0], side="right") - 1
    return Matched(kind, (), np.stack(tables, axis=1), step.astype(np.int64))


def _blocks(calls: Floats) -> Floats:
    """What each rank's clock is ahead of the median one's, ``[call, rank]``: one value for all
    calls of a block."""
    ends = calls[:, :, 1]
    ahead = ends - np.median(ends, axis=1, keepdims=True)
    count = min(max(len(calls) // _BLOCK_CALLS, 1), _MOST_BLOCKS)
    parts = np.array_split(ahead, count)
    return np.concatenate([np.tile(np.median(part, axis=0), (len(part), 1)) for part in parts])


def _coincide(calls: Floats) -> bool:
    """Whether calls end on all ranks at about the same time."""
    if len(calls) < FEW_CALLS:
        return True
    calls = calls[np.argsort(calls[:, 0, 0], kind="stable")]
    ends = calls[:, :, 1] - _blocks(calls)
    apart = ends.max(axis=1) - ends.min(axis=1)
    length = (calls[:, :, 1] - calls[:, :, 0]).max(axis=1)
    return float(np.median(apart)) <= _COINCIDE * float(np.median(length))


def lateness_of(
    matched: Sequence[Matched], step_ms: Mapping[int, float | None]
) -> list[dict[str, Any]]:
    """Who comes late to the collectives of each group, after the first of its ranks: rows of the
    table `lateness`; groups with few calls are left out. ``step_ms``: a step of each rank's trace.
    """
    groups: dict[tuple[str, tuple[int, ...]], list[Matched]] = {}
    for each in matched:
        if each.kind.operation in TOGETHER:
            groups.setdefault((each.kind.group, each.ranks), []).append(each)
    rows = []
    for (group, ranks), every in groups.items():
        calls = np.concatenate([each.calls for each in every])
        step = np.concatenate([each.step for each in every])
        order = np.argsort(calls[:, 0, 0], kind="stable")
        if len(calls) >= FEW_CALLS:
            late = _late(ranks, calls[order], step[order])
            head = {"group": group, "members": shorten(cpu_set({*ranks}), 100), "calls": len(calls)}
            rows += [{**head, **row, "step_ms": step_ms.get(row["rank"])} for row in late]
    return rows


def _late(
    ranks: tuple[int, ...], calls: Floats, step: NDArray[np.int64]
) -> Iterator[dict[str, Any]]:
    """How late each rank begins its calls, in ms; how often it is the last, and its clock."""
    ahead = _blocks(calls)
    begins = calls[:, :, 0] - ahead
    late = (begins - begins.min(axis=1, keepdims=True)).round(9)  # ns, as traces have
    last = np.zeros(len(ranks))
    np.add.at(last, late.argmax(axis=1), late.max(axis=1) > 0)
    clock, latest = np.median(ahead, axis=0), latest_of(late, step)
    for place, rank in enumerate(ranks):
        own = 1e3 * late[:, place]
        yield {
            "rank": rank,
            "late_median_ms": float(np.median(own)),
            "last_share": float(last[place] / len(calls)),
            "latest": place == latest,
            "clock_ahead_ms": 1e3 * float(clock[place] - clock[0]),
        }


def latest_of(late: Floats, step: NDArray[np.int64]) -> int | None:
    """The column of ``late`` ``[call, rank]`` (seconds) that is late throughout a recording.

    Calls of one step are late for one reason, so their mean counts once. None unless there are
    FEWEST_STEPS steps, and of PARTS equal parts of them the rank is the latest in each, ERRORS
    standard errors of the parts before the next one, and the last in LAST_SHARE of the calls.
    """
    known, place = np.unique(step[step >= 0], return_inverse=True)
    if len(known) < FEWEST_STEPS:
        return None
    calls = late[step >= 0]
    means = np.zeros((len(known), late.shape[1]))
    np.add.at(means, place, calls)
    means /= np.bincount(place)[:, None]
    parts = np.array([part.mean(axis=0) for part in np.array_split(means, PARTS)])
    worst = int(parts.mean(axis=0).argmax())
    before = parts[:, worst] - np.delete(parts, worst, axis=1).max(axis=1)
    last = (calls.argmax(axis=1) == worst) & (calls.max(axis=1) > 0)
    error = float(before.std(ddof=1)) / PARTS**0.5
    if (before <= 0).any() or last.mean() < LAST_SHARE or before.mean() < ERRORS * error:
        return None
    return worst
