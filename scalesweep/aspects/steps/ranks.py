"""The tables `ranks` and `stragglers`: times of every rank, and who is slower than the others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalesweep.analysis.rank_stats import MOST_RUNS, STEP, RankTimes, Slow, rank_times, slow_ranks
from scalesweep.analysis.step_delays import FEWEST_STEPS
from scalesweep.analysis.types import Floats
from scalesweep.aspects.steps.causes import Accounted
from scalesweep.table.declared import Estimate, SourceRow, column
from scalesweep.tables.points import Point

QUANTILES = {"p05": 0.05, "median": 0.5, "p95": 0.95, "max": 1.0}
# Of step times, which hold the waiting for others.
VICTIM = "its steps may be longer because it waits in them for a rank that is late before its own"


@dataclass(frozen=True, kw_only=True)
class _OfTime(SourceRow):
    """What both tables say of a point."""

    time: str = column(
        "whose time: `work` or `step-work` (of the rank alone, in an epoch or a step), `input` or "
        "`step-input` (waiting for batches), `epoch` or `step` (may hold waiting for other ranks)"
    )


@dataclass(frozen=True, kw_only=True)
class RankRow(_OfTime, table="ranks"):
    """A rank of a run: quantiles of its times, warm-up steps and the first epoch left out."""

    run_id: str = column("the run")
    repeat: int = column("its repeat")
    rank: int = column("the rank", "1")
    host: str | None = column("its host; missing where the record does not tell every rank's")
    steps: int = column("values of the rank", "1")
    p05: float = column("5 % quantile", "s")
    median: float = column("median", "s")
    p95: float = column("95 % quantile", "s")
    max: float = column("the longest", "s")
    slow: float = column("median over that of all ranks", "1")


@dataclass(frozen=True, kw_only=True)
class StragglerRow(_OfTime, table="stragglers"):
    """A rank or host that is slower than the others, by the rule in docs/methods/intervals.md."""

    rank: int | None = column("the rank; missing: a host", "1")
    host: str | None = column("its host")
    step_ranks: str = column("the ranks that are slow, separated by commas")
    of: int = column("how many ranks (or hosts) are compared", "1")
    runs: int = column("runs", "1")
    ratio: Estimate = column(
        "median time over that of all, of two over the other one's, mean over runs", "1"
    )
    excess: float = column("what it takes more, in whole steps", "1")
    clear: bool = column("whether that is clear")
    reason: str = column("why it is not")


@dataclass(frozen=True)
class StepRun:
    """What is read of a run: ``times`` of its ranks ``[step, rank]`` by whose time it is, each with
    those of whole steps; ``whole`` steps in s, None if it keeps none that can be true; what ranks
    do in steps that have spans (``accounted``), if they meet in them."""

    run_id: str
    repeat: int
    hosts: Sequence[str]  # of the ranks; empty where not known
    times: Mapping[str, tuple[Floats, Floats]]
    whole: Floats | None = None
    accounted: Accounted | None = None


def rank_rows(point: Point, runs: Sequence[StepRun]) -> Iterator[_OfTime]:
    """The rows of both tables on a point; of eight steps with spans or more `causes` says who
    is late."""
    for kind in dict.fromkeys(kind for run in runs for kind in run.times):
        head: dict[str, Any] = {"point": point.values, "source": point.source, "time": kind}
        kept = [run for run in runs if kind in run.times]
        reduced = [rank_times(*run.times[kind]) for run in kept]
        for run, stats in zip(kept, reduced, strict=True):
            times, slow = run.times[kind][0], stats.slow.tolist()
            quantiles = np.quantile(times, [*QUANTILES.values()], axis=0).T.tolist()
            for rank, values in enumerate(quantiles):
                yield RankRow(
                    **head, run_id=run.run_id, repeat=run.repeat, rank=rank, steps=len(times),
                    host=run.hosts[rank] if run.hosts else None,
                    slow=slow[rank],
                    **dict(zip(QUANTILES, values, strict=True)),
                )  # fmt: skip
        if not any(run.accounted and run.accounted.work.shape[0] >= FEWEST_STEPS for run in kept):
            yield from _named(head, kept, reduced)


def _named(
    head: dict[str, Any], runs: Sequence[StepRun], reduced: Sequence[RankTimes]
) -> Iterator[StragglerRow]:
    """Slow hosts, if they are the same in all runs and most of their ranks are slow, then slow
    ranks that are not on them."""
    names = sorted(set(runs[0].hosts))
    same = all(sorted(set(run.hosts)) == names for run in runs)
    on_them: set[int] = set()
    if same and len(names) > 1 and any(len(names) < len(run.hosts) or run.hosts != runs[0].hosts
                                       for run in runs):  # fmt: skip
        hosts = [each.of_hosts(run.hosts, names) for run, each in zip(runs, reduced, strict=True)]
        for slow in slow_ranks(hosts):
            host = names[slow.place]
            own = [[place for place, name in enumerate(run.hosts) if name == host] for run in runs]
            late = np.concatenate([each.excess[at] for each, at in zip(reduced, own, strict=True)])
            if (late >= np.median(late) / 2).mean() >= MOST_RUNS:
                on_them.update(*own)
                yield _straggler(head, slow, len(runs), own[0], len(names), host=host)
    for slow in slow_ranks(reduced):
        if (rank := slow.place) not in on_them:
            at = {run.hosts[rank] if run.hosts else None for run in runs}
            on = at.pop() if len(at) == 1 else None
            count = reduced[0].slow.size
            yield _straggler(head, slow, len(runs), [rank], count, rank=rank, host=on)


def _straggler(
    head: dict[str, Any], slow: Slow, runs: int, ranks: list[int], of: int, *,
    rank: int | None = None, host: str | None = None,
) -> StragglerRow:  # fmt: skip
    reason = VICTIM if head["time"] == STEP else ""
    if not slow.sure:
        reason = "one run" if runs == 1 else "the interval includes 1"
    return StragglerRow(
        **head, rank=rank, host=host, step_ranks=", ".join(map(str, ranks)), of=of, runs=runs,
        ratio=slow.ratio, excess=slow.excess, clear=not reason, reason=reason,
    )  # fmt: skip
