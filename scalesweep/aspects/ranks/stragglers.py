"""Which ranks and hosts are slower than the others, judged from the table `ranks`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.analysis.outliers import OUTLIER_FROM, outliers
from scalesweep.analysis.rank_stats import NOTABLE
from scalesweep.analysis.stats import mean_interval
from scalesweep.analysis.table_io import without_attrs
from scalesweep.analysis.types import Floats
from scalesweep.experiment.results import ExperimentResults, Row

# The most that chance may make of it.
CHANCE = 0.01
# In so many of the runs it must be slow, by at least half of what is notable.
MOST_RUNS = 0.8
# What is to be said of times that may hold waiting for other ranks.
HIDDEN = "where steps wait for all ranks, this does not show which one holds the others up"


@dataclass(frozen=True)
class Times:
    """The times of one kind of all ranks of a point: arrays [run, rank]."""

    row: Row  # parameters and source
    kind: str
    runs: list[str]
    steps: list[int]  # values of a rank, by run
    hosts: list[list[str | None]]
    columns: dict[str, Floats]

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return self.columns["median"].shape[1]

    def middle(self, name: str) -> Floats:
        """A column by rank: the median over the runs, ``[rank]``."""
        return np.asarray(np.median(self.columns[name], axis=0), np.float64)


@dataclass(frozen=True)
class Straggler:
    """A rank, or a host with all its ranks, that is slower than the others.

    ``ratio`` is its median time over the median of all ``of`` ranks (hosts), of two over the other
    one's: the mean over the runs, with the 95 % interval over the runs, or of one run over its
    steps. ``sure``: there are several runs, and the interval lies above 1.
    """

    rank: int | None  # None: a host
    host: str | None
    ratio: float
    low: float
    high: float
    excess: float  # the difference as a share of a whole step
    runs: int  # in which it was
    of: int
    ranks: tuple[int, ...]  # those that it always had, or the rank itself

    @property
    def sure(self) -> bool:
        """Whether the interval over several runs carries it."""
        return self.runs > 1 and self.low > 1

    @property
    def refuted(self) -> bool:
        """Whether runs enough to tell differ too much: an interval of two is always wide."""
        return self.runs > 2 and not self.sure


def rank_times(results: ExperimentResults) -> list[Times]:
    """The points of the table `ranks` by kind of time, in its order; largest scale first."""
    frame = results.tables.get("ranks")
    if frame is None:
        return []
    points = {run["run_id"]: run["point"] for run in results.entry["runs"]}
    by_point: dict[tuple[object, ...], list[pd.DataFrame]] = {}
    whole = without_attrs(frame)[[*_NAMES]]
    for (run_id, kind), part in whole.groupby(["run_id", "time"], sort=False):
        if run_id in points:
            key = (*results.key(points[run_id], results.axes), part["source"].iloc[0], kind)
            by_point.setdefault(key, []).append(part.sort_values("rank"))
    result = []
    for parts in by_point.values():
        first = parts[0]
        run_id = str(first["run_id"].iloc[0])
        row = {name: points[run_id].get(name) for name in results.axes}
        hosts = [[None if pd.isna(h) else str(h) for h in part["host"]] for part in parts]
        columns = {
            name: np.stack([part[name].to_numpy(np.float64) for part in parts]) for name in _NUMBERS
        }
        result.append(
            Times(
                {**row, "source": str(first["source"].iloc[0])},
                str(first["time"].iloc[0]),
                [str(part["run_id"].iloc[0]) for part in parts],
                [int(part["steps"].iloc[0]) for part in parts],
                hosts,
                columns,
            )
        )
    return sorted(result, key=lambda times: -times.ranks)


_NUMBERS = (
    *("median", "p05", "p25", "p75", "p95", "max", "slow", "slow_low", "slow_high", "excess"),
    *("chance", "host_slow", "host_low", "host_high", "host_chance"),
)
_NAMES = ("source", "run_id", "repeat", "rank", "host", "time", "steps", *_NUMBERS)


def stragglers(times: Times) -> list[Straggler]:
    """Slow hosts, and slow ranks that are not on them, the slowest first.

    Of three or more, one is named that is slower than the median by 5 % of a step on average, by
    half of that in four of five runs at least, by more than chance makes of the slowest of so many
    in 1 of 100 cases (``ranktimes.chances``), of three runs or more with an interval above 1 and,
    where there are five or more, with a modified z-score over 3.5 among them. Of two, the slower
    one over several runs where it takes 5 % of a step longer, with an interval above 1. Hosts are
    compared by the medians of their ranks, and named where four of five of these are slow by at
    least half of what their median is.
    """
    hosts = _hosts(times)
    on_them = {rank for host in hosts for rank in host.ranks}
    ranks = [of_rank for of_rank in _of_ranks(times) if of_rank.rank not in on_them]
    return [*hosts, *ranks]


def _of_ranks(times: Times) -> list[Straggler]:
    columns = times.columns
    names = ("slow", "slow_low", "slow_high", "excess")
    slow, low, high, excess = (columns[name] for name in names)
    stragglers = []
    for rank in _odd(slow, excess, low, high, columns["chance"][0]):
        ratio = _ratio(slow[:, rank], low[:, rank], high[:, rank], times.ranks)
        hosts = {host_[rank] for host_ in times.hosts}
        host = hosts.pop() if len(hosts) == 1 else None
        more = float(excess[:, rank].mean()) * (2 if times.ranks == 2 else 1)
        stragglers.append(Straggler(rank, host, *ratio, more, len(slow), times.ranks, (rank,)))
    return sorted(
        [straggler for straggler in stragglers if not straggler.refuted],
        key=lambda straggler: -straggler.ratio,
    )


def _hosts(times: Times) -> list[Straggler]:
    """The hosts that are slower than the others in every run they were part of, most of their ranks
    too."""
    names = list(dict.fromkeys(host for hosts in times.hosts for host in hosts if host))
    columns = times.columns
    if len(names) < 2 or np.isnan(columns["host_slow"]).all():
        return []
    places = {name: place for place, name in enumerate(names)}
    at = np.array([[places[host or names[0]] for host in hosts] for hosts in times.hosts])
    stats = ("host_slow", "host_low", "host_high", "host_chance", "excess")
    # [run, host]; NaN where a host was not there. Of the excess the median over its ranks.
    slow, low, high, chance, excess = (
        np.array(
            [_by_host(row, hosts, len(names)) for row, hosts in zip(columns[name], at, strict=True)]
        )
        for name in stats
    )
    stragglers = []
    # The same in every run in which the host was; missing where it was not, or nothing is notable.
    least = np.where(np.isnan(chance), 1.0, chance).min(axis=0)
    for place in _odd(slow, excess, low, high, least):
        there = ~np.isnan(slow[:, place])
        own = at == place
        lag = columns["excess"][own]
        if float((lag >= np.median(lag) / 2).mean()) < MOST_RUNS:
            continue  # some of its ranks, not the host
        ratio = _ratio(slow[there, place], low[there, place], high[there, place], len(names))
        more = float(excess[there, place].mean()) * (2 if len(names) == 2 else 1)
        ranks = tuple(np.flatnonzero(own.all(axis=0)).tolist())
        stragglers.append(
            Straggler(None, names[place], *ratio, more, int(there.sum()), len(names), ranks)
        )
    return sorted(
        [straggler for straggler in stragglers if not straggler.refuted],
        key=lambda straggler: -straggler.ratio,
    )


def _by_host(values: Floats, hosts: "np.ndarray[Any, np.dtype[np.int_]]", count: int) -> Floats:
    """Median of the ranks' values on each of ``count`` hosts; NaN for a host without ranks."""
    medians = np.full(count, np.nan)
    order = np.argsort(hosts, kind="stable")
    there, begins = np.unique(hosts[order], return_index=True)
    if there.size == hosts.size:  # a rank each
        medians[there] = values[order]
        return medians
    parts = np.split(values[order], begins[1:])
    medians[there] = [part[0] if len(part) == 1 else np.median(part) for part in parts]
    return medians


def _odd(slow: Floats, excess: Floats, low: Floats, high: Floats, chance: Floats) -> list[int]:
    """Columns of ``slow[run, rank or host]`` that are to be named; NaN where a run lacks one."""
    there = ~np.isnan(slow)
    usual = there.sum(axis=0) * 2 >= len(slow)
    if slow.shape[1] == 2:
        if len(slow) < 2 or not there.all():
            return []
        slower = int(np.argmax(slow.mean(axis=0)))
        least = _ratio(slow[:, slower], low[:, slower], high[:, slower], 2)[1]
        return [slower] if least > 1 and 2 * excess[:, slower].mean() >= NOTABLE else []
    runs = np.maximum(there.sum(axis=0), 1)
    more = np.where(there, excess, 0.0).sum(axis=0) / runs
    often = (there & (excess >= NOTABLE / 2)).sum(axis=0) / runs
    named = usual & (more >= NOTABLE) & (often >= MOST_RUNS) & (chance <= CHANCE)
    if named.any() and slow.shape[1] >= OUTLIER_FROM:
        logs = np.where(there, np.log(np.where(there, slow, 1.0)), 0.0).sum(axis=0) / runs
        far = {outlier.name for outlier in outliers(logs, [str(i) for i in range(logs.size)])}
        named &= np.array([str(i) in far for i in range(logs.size)])
    return [int(place) for place in np.flatnonzero(named)]


def _ratio(slow: Floats, low: Floats, high: Floats, count: int) -> tuple[float, float, float]:
    """Mean over the runs with its 95 % interval; of one run that over its steps.

    Of two the ratio of one to the other: s / (2 - s), where s is that to the mean of both.
    """
    if count == 2:
        slow, low, high = (
            np.where(value < 2, value / np.where(value < 2, 2 - value, 1.0), np.inf)
            for value in (slow, low, high)
        )
    if slow.size == 1:
        return float(slow[0]), float(low[0]), float(high[0])
    interval = mean_interval(slow)
    return float(slow.mean()), interval.low, interval.high
