"""The table `links`: the latency between every two ranks, and which links are slow.

Logarithms of the latencies of links of one class (within a host, between hosts) are taken to be
normal but for a minority that is slow. A link is slow if it lies more robust standard deviations
(1.4826 MAD) above the median than the largest of as many normal values does in 5 % of cases, and
takes at least 25 % longer than the median. The threshold is that of Student's t at 0.05 over the
number of links (Bonferroni), with 0.37 degrees of freedom for each link: what the MAD knows of a
spread is 37 % of what the standard deviation does (P. J. Huber, Robust Statistics, 1981, 5.1).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scalesweep.analysis.stats import MAD_TO_STD
from scalesweep.analysis.types import Floats
from scalesweep.core.rank_columns import by_rank, machine_column
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, Rule, number_of
from scalesweep.table.declared import DeclaredRow, column
from scalesweep.tables.making import Maker, TableInputs
from scalesweep.tables.run_arrays import each_run, ranks_of

_log = logging.getLogger(__name__)

SECONDS = "link_seconds"  # array of the samples, [repeat, rank, rank]
SLOWEST_METRIC = ("slowest_latency", "run")  # only runs that have it are read
MAX_ROWS = 200_000
WITHIN, BETWEEN = "within a host", "between hosts"
_NO_TIMES = f"{SECONDS} are no positive seconds [repeat, rank, rank]"
# Of fewer links of a class none is called slow: what is usual among them is not known.
FEWEST_LINKS = 8
_FALSE_ALARMS = 0.05
_LEAST_EXCESS = 0.25  # what is slower by less is no reason to look at a cable
_EFFICIENCY = 0.37
# Clocks and schedulers have a grain: latencies never agree to better than this.
_GRAIN = 0.01


@dataclass(frozen=True, kw_only=True)
class Pair(DeclaredRow, table="links"):
    """Two ranks of a run, the lower one first."""

    source: str | None = column("measured, simulated or imported")
    run_id: str = column("the run")
    repeat: int = column("its repeat")
    rank_a: int = column("the lower rank")
    rank_b: int = column("the other rank")
    host_a: str | None = column("host of `rank_a`; missing where the record does not tell")
    host_b: str | None = column("host of `rank_b`")
    link: str = column(f"the class of the link: `{WITHIN}` or `{BETWEEN}`")
    latency: float = column("half the time of a message to and fro, the best repeat", "s")
    times: float = column("`latency` over the median of the run's links of that class", "1")
    slow: bool = column("whether it is slow (docs/methods/machine.md)")


def pair_rows(inputs: TableInputs) -> Iterator[Pair]:
    """The pairs of every run that timed its links, at most 200,000.

    A run whose files are damaged is left out, with a line.
    """
    data, runs = inputs.data, inputs.runs
    if runs is None or SLOWEST_METRIC not in data.measures:
        return
    rows = 0
    for point in inputs.points:
        ranks = ranks_of(data, point)
        for row, record, arrays in each_run(data, point.rows.tolist(), runs, "the table of links"):
            rows += ranks * (ranks - 1) // 2
            if rows > MAX_ROWS:
                return
            times, run_id = arrays.get(SECONDS), record["run_id"]
            if times is None:
                continue
            best = times.astype(np.float64).min(axis=0)
            if best.shape != (ranks, ranks) or not (best[np.triu_indices(ranks, 1)] > 0).all():
                data.unread.append(run_id)
                _log.warning("%s: %s: left out of the table of links", run_id, _NO_TIMES)
                continue
            names = by_rank(machine_column(record["resources"]), ranks)
            hosts = [str(host) for host in names] if names and all(names) else [None] * ranks
            repeat = int(data.summary["repeat"].iloc[row])
            head: dict[str, Any] = {
                "point": point.values, "source": point.source, "run_id": run_id, "repeat": repeat,
            }  # fmt: skip
            links: list[Any] = links_of(best, hosts).to_dict("records")
            yield from (Pair(**head, **link) for link in links)


def links_of(seconds: Floats, hosts: Sequence[str | None]) -> pd.DataFrame:
    """The links of one run: ``seconds`` ``[rank, rank]``, the host of each rank."""
    first, second = np.triu_indices(len(seconds), 1)
    frame = pd.DataFrame({"rank_a": first, "rank_b": second})
    frame["host_a"], frame["host_b"] = ([hosts[rank] for rank in side] for side in (first, second))
    # Where hosts are not known all links are of one class.
    same = frame["host_a"].notna() & (frame["host_a"] == frame["host_b"])
    frame["link"] = np.where(same, WITHIN, BETWEEN)
    frame["latency"] = seconds[first, second]
    classes = frame.groupby("link")["latency"]
    frame["times"] = frame["latency"] / classes.transform("median")
    frame["slow"] = classes.transform(lambda own: slow_ones(own.to_numpy())).astype(bool)
    return frame.replace({np.nan: None})


def slow_ones(seconds: Floats) -> NDArray[np.bool_]:
    """Which of the links of one class are slow, by their latencies ``seconds`` ``[link]``."""
    from scipy.special import stdtrit

    count, logs = len(seconds), np.log(seconds)
    if count < FEWEST_LINKS:
        return np.zeros(count, np.bool_)
    above = logs - np.median(logs)
    spread = max(MAD_TO_STD * float(np.median(np.abs(above))), _GRAIN)
    threshold = -stdtrit(_EFFICIENCY * count, _FALSE_ALARMS / count)
    return np.asarray((above > threshold * spread) & (above >= np.log1p(_LEAST_EXCESS)))


MAKERS = (Maker(Pair, pair_rows),)


RULE, NONE, UNJUDGED = "slow links", "no slow link", "links not judged"
NAMED = 3
# If more than this share of a class is slow, it is of several kinds rather than broken.
FEW = 0.2
# A host is slow, rather than its links, if it has so many and this share of them is.
FEWEST_OF_HOST, MOST_OF_HOST = 3, 0.75


def slow_links(results: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none."""
    frame = results.tables.get(Pair.TABLE)
    if frame is None:
        return []
    groups = frame.groupby([*results.axes, "source", "link"], dropna=False)
    return [finding for _, pairs in groups for finding in _said(results, pairs)]


def _ends(rank_a: int, rank_b: int, host_a: str | None, host_b: str | None) -> tuple[str, str]:
    """What a link is of: hosts, or ranks where they share one or it is not known."""
    if not isinstance(host_a, str) or not isinstance(host_b, str) or host_a == host_b:
        on = f" on {host_a}" if isinstance(host_a, str) else ""
        return f"rank {rank_a}{on}", f"rank {rank_b}{on}"
    first, second = sorted((host_a, host_b))
    return first, second


def _said(results: ExperimentResults, pairs: pd.DataFrame) -> Iterator[Finding]:
    """The findings on a class of links: medians over the runs; slow in more than half of them."""
    ends = pairs[["rank_a", "rank_b", "host_a", "host_b"]].itertuples(index=False)
    pairs = pairs.assign(ends=pd.Series([_ends(*each) for each in ends], pairs.index))
    kinds = {"latency": "median", "times": "median"}
    by_run = pairs.groupby(["ends", "run_id"]).agg({**kinds, "slow": "any"})
    links = by_run.groupby("ends").agg({**kinds, "slow": "mean"})
    links["slow"] = links["slow"] > 0.5
    links = links.sort_values("times", ascending=False).reset_index()
    row: dict[str, Any] = pairs.to_dict("records")[0]  # type: ignore[assignment]
    kind = row["link"]
    key = {name: row[name] for name in (*results.axes, "source")}
    units = {"latency": "s"}

    def stated(rule: str, state: str, subject: str = "", **numbers: float) -> Finding:
        every = {"links": len(links), **numbers}
        return Finding(
            results.name, rule, state, subject=subject,
            words={"kind": kind, "at": f" at {results.describe(row)}" if results.axes else ""},
            numbers=tuple(number_of(n, v, units.get(n, "1")) for n, v in every.items()),
            evidence={"experiment": results.name, "table": Pair.TABLE, "key": key},
            reason="its runs are too few to confirm it" if state == OPEN else "",
        )  # fmt: skip

    hosts = _slow_hosts(links) if kind == BETWEEN else []
    slow = links[links["slow"]]
    others = slow[slow["ends"].map({*hosts}.isdisjoint).astype(bool)]
    if len(links) < FEWEST_LINKS:
        yield stated(UNJUDGED, NOTE, "too few of them")
    elif len(others) > FEW * len(links):
        yield stated(UNJUDGED, NOTE, "too many of them are slow, as if of another kind")
    else:
        state = CLEAR if pairs["run_id"].nunique() > 1 else OPEN
        for host in hosts:
            its = slow[[host in ends for ends in slow["ends"]]]
            yield stated(RULE, state, f"host {host}", times=float(its["times"].median()))
        for ends, latency, times in others[["ends", "latency", "times"]].head(NAMED).to_numpy():
            subject = f"the link between {' and '.join(ends)}"
            yield stated(RULE, state, subject, times=float(times), latency=float(latency))
        if not hosts and others.empty:
            yield stated(NONE, NOTE, times=float(links["times"].max()))


def _slow_hosts(links: pd.DataFrame) -> list[str]:
    """Hosts most of whose links are slow, unless most links of all are."""
    of_host = links.explode("ends").groupby("ends")["slow"].agg(["sum", "size"])
    slow = (of_host["sum"] >= FEWEST_OF_HOST) & (of_host["sum"] >= MOST_OF_HOST * of_host["size"])
    hosts = [str(host) for host in of_host.index[slow]]
    return hosts if len(hosts) <= max(1, FEW * len(of_host)) else []


RULES = (
    Rule(
        RULE, slow_links,
        says={CLEAR: "Slow links {kind}{at}: {subject} takes {times:x} the median of {links}."},
        next={CLEAR: "report it to the site, or leave the host out"},
    ),
    Rule(
        NONE, None,
        says={NOTE: "None of {links} links {kind}{at} is slow: at most {times:x} the median."},
    ),
    Rule(
        UNJUDGED, None,
        says={NOTE: "{links} links {kind}{at} are not judged: {subject}."},
    ),
)  # fmt: skip
