"""Findings on the links of a network: which are slow, by the names of their hosts."""

from collections.abc import Mapping
from typing import Any

from scalesweep.analysis.slow_links import FEWEST_LINKS
from scalesweep.core.formatting import counted, number
from scalesweep.experiment.links import Link, LinkClass, link_classes
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, marked

RULE = "slow links"
NAMED = 3


def slow_links(results: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none.

    A note where there are too few to compare, or so many are slow that they are of several kinds.
    """
    return [finding for links in link_classes(results) for finding in _findings(results, links)]


def _findings(results: ExperimentResults, links: LinkClass) -> list[Finding]:
    at = f", at {results.describe(links.row)}" if results.axes else ""
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
    key = {name: links.row.get(name) for name in results.axes} | {"source": links.row["source"]}
    evidence = {
        "experiment": results.name, "table": "links", "key": key, "numbers": dict(numbers), **more,
    }  # fmt: skip
    return Finding(results.name, RULE, level, marked(links.row["source"], f"{text}."), evidence)
