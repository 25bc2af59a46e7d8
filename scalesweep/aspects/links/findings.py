"""Findings on the links of a network: which are slow, by the names of their hosts."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from scalesweep.aspects.links.table import BETWEEN, FEWEST_LINKS, Pair
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, Rule, number_of

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
