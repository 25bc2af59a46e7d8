"""Findings on the links of a network: which are slow, by the names of their hosts."""

from collections.abc import Iterator

import pandas as pd

from scalesweep.analysis.slow_links import FEW, FEWEST_LINKS
from scalesweep.aspects.links.table import BETWEEN, Pair
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, Rule, marked

RULE = "slow links"
NAMED = 3
# A host is slow, rather than its links, if it has so many and this share of them is.
FEWEST_OF_HOST, MOST_OF_HOST = 3, 0.75


def slow_links(results: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none."""
    groups: dict[Key, list[Pair]] = {}
    for pair in results.of(Pair):
        key = (*results.key(pair.point, results.axes), pair.source, pair.link)
        groups.setdefault(key, []).append(pair)
    return [
        _finding(results, pairs[0], *said)
        for _, pairs in sorted(groups.items(), key=lambda item: str(item[0]))
        for said in _said(pairs)
    ]


def links_of_class(pairs: list[Pair]) -> pd.DataFrame:
    """A row per link of a class, the slowest first: its ``ends``, the medians over the runs of
    ``latency`` (s) and ``times``, and whether it is ``slow`` in more than half of the runs."""
    frame = pd.DataFrame(
        [(pair.ends, pair.run_id, pair.latency, pair.times, pair.slow) for pair in pairs],
        columns=["ends", "run", "latency", "times", "slow"],
    )
    by_run = frame.groupby(["ends", "run"]).agg(
        latency=("latency", "median"), times=("times", "median"), slow=("slow", "any")
    )
    links = by_run.groupby("ends").agg(
        latency=("latency", "median"), times=("times", "median"), slow=("slow", "mean")
    )
    links["slow"] = links["slow"] > 0.5
    return links.sort_values("times", ascending=False).reset_index()


def _said(pairs: list[Pair]) -> Iterator[tuple[str, str, dict[str, float], dict[str, object]]]:
    """Level, words, numbers and further evidence of the sentences on a class of links."""
    links, kind = links_of_class(pairs), pairs[0].link
    runs = len({pair.run_id for pair in pairs})
    usual = f"the median link {kind}"
    numbers = {"typical": float(links["latency"].median()), "links": len(links), "runs": runs}
    if len(links) < FEWEST_LINKS or pairs[0].threshold is None:
        text = f"too few links {kind} to judge: {len(links)}, of {FEWEST_LINKS} at least"
        yield NOTE, text, numbers, {}
        return
    hosts = _slow_hosts(links) if kind == BETWEEN else []
    slow = links[links["slow"]]
    others = slow[slow["ends"].map({*hosts}.isdisjoint).astype(bool)]
    if len(others) > FEW * len(links):
        text = f"{len(others):,} of {counted(len(links), 'link')} {kind} are slow: another kind"
        yield NOTE, text, numbers, {}
        return
    level = CLEAR if runs > 1 else OPEN
    for host in hosts:
        its = slow[[host in ends for ends in slow["ends"]]]
        times = float(its["times"].median())
        text = f"host {host} is slow: {len(its)} of its links take {number(times)} times {usual}"
        yield level, text, {**numbers, "times": times}, {"host": host}
    for ends, latency, times in others[["ends", "latency", "times"]].head(NAMED).to_numpy():
        known = {**numbers, "times": float(times), "latency": float(latency)}
        text = f"the link between {' and '.join(ends)} is slow: {number(times)} times {usual}"
        yield level, text, known, {"ends": list(ends)}
    if not hosts and others.empty:
        most = number(float(links["times"].max()))
        text = f"no slow link among {len(links):,} {kind}: at most {most} times the median"
        yield NOTE, text, numbers, {}


def _slow_hosts(links: pd.DataFrame) -> list[str]:
    """Hosts most of whose links are slow, unless most links of all are."""
    of_host = links.explode("ends").groupby("ends")["slow"].agg(["sum", "size"])
    slow = (of_host["sum"] >= FEWEST_OF_HOST) & (of_host["sum"] >= MOST_OF_HOST * of_host["size"])
    hosts = [str(host) for host in of_host.index[slow]]
    return hosts if len(hosts) <= max(1, FEW * len(of_host)) else []


def _finding(
    results: ExperimentResults,
    pair: Pair,
    level: str,
    text: str,
    numbers: dict[str, float],
    more: dict[str, object],
) -> Finding:
    at = f", at {results.describe(pair.point)}" if results.axes else ""
    evidence = {
        "experiment": results.name,
        "table": Pair.TABLE,
        "key": {name: pair.point.get(name) for name in results.axes} | {"source": pair.source},
        "numbers": numbers,
        **more,
    }
    return Finding(results.name, RULE, level, marked(pair.source, f"{text}{at}."), evidence)


RULES = (Rule(RULE, slow_links, figures=("links",)),)
