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


def slow_links(study: ExperimentResults) -> list[Finding]:
    """For each class of links of each point its slow hosts and links, or that there is none.

    A note where there are too few to compare, or so many are slow that they are of several kinds.
    """
    return [finding for one in link_classes(study) for finding in _findings(study, one)]


def _findings(study: ExperimentResults, one: LinkClass) -> list[Finding]:
    at = f", at {study.describe(one.row)}" if study.axes else ""
    usual = f"the median link {one.kind} ({_micro(one.typical)})"
    slowest = max(one.links, key=lambda link: link.times)
    numbers = {"typical": one.typical, "links": len(one.links), "runs": one.runs}
    if not one.judged:
        text = (
            f"a message takes {_micro(one.typical)} {one.kind}; too few links "
            f"({len(one.links)}, of {FEWEST_LINKS} at least) to say whether one is slow{at}"
        )
        return [_made(study, one, NOTE, text, numbers)]
    if one.of_several_kinds:
        text = (
            f"{len(one.slow):,} of {counted(len(one.links), 'link')} {one.kind} take clearly "
            f"longer than {usual}, too many to be broken: look at what lies between them{at}"
        )
        return [_made(study, one, NOTE, text, numbers)]
    level = CONFIRMED if one.runs > 1 else OPEN
    sure = f", in most of {one.runs} runs" if one.runs > 1 else "; one run, not confirmed"
    found = []
    for host in one.slow_hosts:
        own = [link for link in one.links if host in link.ends]
        slow = [link for link in own if link.slow]
        times = sorted(link.times for link in slow)[len(slow) // 2]
        text = (
            f"host {host} is slow on the network: {len(slow)} of its {len(own)} links take about "
            f"{number(times)} times as long as {usual}{sure}{at}"
        )
        found.append(_made(study, one, level, text, {**numbers, "times": times}, host=host))
    for link in one.slow[:NAMED]:
        text = (
            f"the link between {_named(link)} is slow: it takes {_micro(link.latency)}, "
            f"{number(link.times)} times as long as {usual}{sure}{at}"
        )
        known = {**numbers, "times": link.times, "latency": link.latency}
        found.append(_made(study, one, level, text, known, ends=list(link.ends)))
    if len(one.slow) > NAMED:
        more = counted(len(one.slow) - NAMED, "more link")
        text = f"{more} {one.kind} take clearly longer than {usual}: see the table{sure}{at}"
        found.append(_made(study, one, level, text, numbers))
    if not found:
        text = (
            f"no slow link among {len(one.links):,} {one.kind}: the slowest, {_named(slowest)}, "
            f"takes {number(slowest.times)} times as long as {usual}{at}"
        )
        found = [_made(study, one, NOTE, text, numbers)]
    return found


def _named(link: Link) -> str:
    return " and ".join(link.ends)


def _micro(seconds: float) -> str:
    return f"{number(1e6 * seconds)} µs"


def _made(
    study: ExperimentResults,
    one: LinkClass,
    level: str,
    text: str,
    numbers: Mapping[str, Any],
    **more: Any,
) -> Finding:
    key = {name: one.row.get(name) for name in study.axes} | {"source": one.row["source"]}
    evidence = {
        "experiment": study.name, "table": "links", "key": key, "numbers": dict(numbers), **more,
    }  # fmt: skip
    return Finding(study.name, RULE, level, marked(one.row["source"], f"{text}."), evidence)
