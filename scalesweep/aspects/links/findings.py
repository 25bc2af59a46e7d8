"""Findings on the links of a network: which are slow, by the names of their hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from scalesweep.analysis.slow_links import FEW, FEWEST_LINKS
from scalesweep.aspects.links.table import BETWEEN, Pair
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, Rule, marked

RULE = "slow links"
NAMED = 3
# A host is slow, rather than its links, if it has so many and this share of them is.
FEWEST_OF_HOST = 3
MOST_OF_HOST = 0.75


@dataclass(frozen=True)
class Link:
    """What all runs say of a link."""

    ends: tuple[str, str]
    latency: float  # s, median over runs
    times: float
    runs: int
    slow: bool  # in more than half of the runs


@dataclass(frozen=True)
class LinkClass:
    """The links of one class at a point."""

    first: Pair
    runs: int
    typical: float  # s
    links: Sequence[Link]
    judged: bool  # there are enough of them
    slow_hosts: Sequence[str]

    @property
    def kind(self) -> str:
        """Within a host or between hosts."""
        return self.first.link

    @property
    def slow(self) -> list[Link]:
        """The slow ones, slowest first, but for those of slow hosts."""
        hosts = set(self.slow_hosts)
        slow = [link for link in self.links if link.slow and not set(link.ends) & hosts]
        return sorted(slow, key=lambda link: -link.times)

    @property
    def of_several_kinds(self) -> bool:
        """Whether so many are slow that they are of another kind rather than broken."""
        return len(self.slow) > FEW * len(self.links)


def link_classes(results: ExperimentResults) -> list[LinkClass]:
    """The classes of links of each point, those between hosts first."""
    groups: dict[Key, dict[str, list[Pair]]] = {}
    for pair in results.of(Pair):
        group = groups.setdefault((*results.key(pair.point, results.axes), pair.source), {})
        group.setdefault(pair.link, []).append(pair)
    return [_class(pairs) for group in groups.values() for _, pairs in sorted(group.items())]


def _class(pairs: Sequence[Pair]) -> LinkClass:
    by_ends: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        by_ends.setdefault(pair.ends, []).append(pair)
    links = []
    for ends, own in by_ends.items():
        runs = {pair.run_id for pair in own}
        slow = {pair.run_id for pair in own if pair.slow}
        values = median(pair.latency for pair in own), median(pair.times for pair in own)
        links.append(Link(ends, *values, len(runs), 2 * len(slow) > len(runs)))
    first = pairs[0]
    judged = len(links) >= FEWEST_LINKS and first.threshold is not None
    hosts = _slow_hosts(links) if first.link == BETWEEN else []
    typical = median(pair.typical for pair in pairs)
    return LinkClass(first, len({pair.run_id for pair in pairs}), typical, links, judged, hosts)


def _slow_hosts(links: Sequence[Link]) -> list[str]:
    """Hosts most of whose links are slow, unless most links of all are."""
    of_host: dict[str, list[Link]] = {}
    for link in links:
        for host in link.ends:
            of_host.setdefault(host, []).append(link)
    hosts = [
        host
        for host, own in of_host.items()
        if len(own) >= FEWEST_OF_HOST and sum(link.slow for link in own) >= MOST_OF_HOST * len(own)
    ]
    return hosts if len(hosts) <= FEW * len(of_host) or len(hosts) == 1 else []


def slow_links(results: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none.

    A note where there are too few to compare, or so many are slow that they are of several kinds.
    """
    return [finding for links in link_classes(results) for finding in _findings(results, links)]


def _findings(results: ExperimentResults, links: LinkClass) -> list[Finding]:
    """The slow hosts and links of a class, or that there is none; latencies in s."""
    at = f", at {results.describe(links.first.point)}" if results.axes else ""
    usual = f"the median link {links.kind} ({_micro(links.typical)})"
    slowest = max(links.links, key=lambda link: link.times)
    numbers = {"typical": links.typical, "links": len(links.links), "runs": links.runs}
    if not links.judged:
        text = (
            f"a message takes {_micro(links.typical)} {links.kind}; too few links "
            f"({len(links.links)}, of {FEWEST_LINKS} at least) to say whether one is slow{at}"
        )
        return [_made(results, links, NOTE, text, numbers)]
    if links.of_several_kinds:
        text = (
            f"{len(links.slow):,} of {counted(len(links.links), 'link')} {links.kind} take clearly "
            f"longer than {usual}, too many to be broken: look at what lies between them{at}"
        )
        return [_made(results, links, NOTE, text, numbers)]
    level = CONFIRMED if links.runs > 1 else OPEN
    sure = f", in most of {links.runs} runs" if links.runs > 1 else "; one run, not confirmed"
    findings = []
    for host in links.slow_hosts:
        own = [link for link in links.links if host in link.ends]
        slow = [link for link in own if link.slow]
        times = sorted(link.times for link in slow)[len(slow) // 2]
        text = (
            f"host {host} is slow on the network: {len(slow)} of its {len(own)} links take about "
            f"{number(times)} times as long as {usual}{sure}{at}"
        )
        findings.append(_made(results, links, level, text, {**numbers, "times": times}, host=host))
    for link in links.slow[:NAMED]:
        text = (
            f"the link between {_named(link)} is slow: it takes {_micro(link.latency)}, "
            f"{number(link.times)} times as long as {usual}{sure}{at}"
        )
        known = {**numbers, "times": link.times, "latency": link.latency}
        findings.append(_made(results, links, level, text, known, ends=list(link.ends)))
    if len(links.slow) > NAMED:
        more = counted(len(links.slow) - NAMED, "more link")
        text = f"{more} {links.kind} take clearly longer than {usual}: see the table{sure}{at}"
        findings.append(_made(results, links, level, text, numbers))
    if not findings:
        text = (
            f"no slow link among {len(links.links):,} {links.kind}: the slowest, "
            f"{_named(slowest)}, takes {number(slowest.times)} times as long as {usual}{at}"
        )
        findings = [_made(results, links, NOTE, text, numbers)]
    return findings


def _named(link: Link) -> str:
    return " and ".join(link.ends)


def _micro(seconds: float) -> str:
    return f"{number(1e6 * seconds)} µs"


def _made(
    results: ExperimentResults,
    links: LinkClass,
    level: str,
    text: str,
    numbers: Mapping[str, Any],
    **more: Any,
) -> Finding:
    source = links.first.source
    evidence = {
        "experiment": results.name,
        "table": Pair.TABLE,
        "key": {name: links.first.point.get(name) for name in results.axes} | {"source": source},
        "numbers": dict(numbers),
        **more,
    }
    return Finding(results.name, RULE, level, marked(source, f"{text}."), evidence)


RULES = (Rule(slow_links, figures={RULE: ("links",)}),)
