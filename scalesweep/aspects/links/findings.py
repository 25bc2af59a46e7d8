"""Findings on the links of a network: which are slow, by the names of their hosts."""

from collections.abc import Iterator

import pandas as pd

from scalesweep.analysis.slow_links import FEW, FEWEST_LINKS
from scalesweep.aspects.links.table import BETWEEN, Pair
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, Rule, number_of

RULE, NONE, UNJUDGED = "slow links", "no slow link", "links not judged"
NAMED = 3
# A host is slow, rather than its links, if it has so many and this share of them is.
FEWEST_OF_HOST, MOST_OF_HOST = 3, 0.75


def slow_links(results: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none."""
    groups: dict[Key, list[Pair]] = {}
    for pair in results.of(Pair):
        key = (*results.key(pair.point, results.axes), pair.source, pair.link)
        groups.setdefault(key, []).append(pair)
    ordered = sorted(groups.items(), key=lambda item: str(item[0]))
    return [finding for _, pairs in ordered for finding in _said(results, pairs)]


def links_of_class(pairs: list[Pair]) -> pd.DataFrame:
    """A row per link of a class, the slowest first: its ``ends``, the medians over the runs of
    ``latency`` (s) and ``times``, and whether it is ``slow`` in more than half of the runs."""
    columns = ["ends", "run_id", "latency", "times", "slow"]
    frame = pd.DataFrame([[getattr(pair, n) for n in columns] for pair in pairs], columns=columns)
    kinds = {"latency": "median", "times": "median"}
    by_run = frame.groupby(["ends", "run_id"]).agg({**kinds, "slow": "any"})
    links = by_run.groupby("ends").agg({**kinds, "slow": "mean"})
    links["slow"] = links["slow"] > 0.5
    return links.sort_values("times", ascending=False).reset_index()


def _said(results: ExperimentResults, pairs: list[Pair]) -> Iterator[Finding]:
    """The findings on a class of links."""
    links, pair = links_of_class(pairs), pairs[0]
    runs = len({pair.run_id for pair in pairs})
    at = f" at {results.describe(pair.point)}" if results.axes else ""
    evidence = {
        "experiment": results.name,
        "table": Pair.TABLE,
        "key": {name: pair.point.get(name) for name in results.axes} | {"source": pair.source},
    }

    def stated(rule: str, state: str, subject: str = "", **numbers: float) -> Finding:
        units = {"latency": "s"}
        every = {"links": len(links), **numbers}
        return Finding(
            results.name, rule, state, subject=subject, words={"kind": pair.link, "at": at},
            numbers=tuple(number_of(n, v, units.get(n, "1")) for n, v in every.items()),
            evidence=evidence,
            reason="its runs are too few to confirm it" if state == OPEN else "",
        )  # fmt: skip

    hosts = _slow_hosts(links) if pair.link == BETWEEN else []
    slow = links[links["slow"]]
    others = slow[slow["ends"].map({*hosts}.isdisjoint).astype(bool)]
    if len(links) < FEWEST_LINKS or pair.threshold is None:
        yield stated(UNJUDGED, NOTE, "too few of them")
    elif len(others) > FEW * len(links):
        yield stated(UNJUDGED, NOTE, "too many of them are slow, as if of another kind")
    else:
        state = CLEAR if runs > 1 else OPEN
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
        RULE, slow_links, figures=("links",),
        says={CLEAR: "Slow links {kind}{at}: {subject} takes {times:x} the median of {links}."},
        next={CLEAR: "report it to the site, or leave the host out"},
    ),
    Rule(
        NONE, None, figures=("links",),
        says={NOTE: "None of {links} links {kind}{at} is slow: at most {times:x} the median."},
    ),
    Rule(
        UNJUDGED, None, figures=("links",),
        says={NOTE: "{links} links {kind}{at} are not judged: {subject}."},
    ),
)  # fmt: skip
