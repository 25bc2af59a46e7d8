"""The links of an experiment's network, read from its table `links`."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scalesweep.analysis.slow_links import FEW, FEWEST_LINKS
from scalesweep.core.formatting import finite
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.tables.links import BETWEEN, NAMES, link_column

# A host is slow, rather than its links, if it has so many and this share of them is.
FEWEST_OF_HOST = 3
MOST_OF_HOST = 0.75


@dataclass(frozen=True)
class Pair:
    """A row of the table."""

    rank_a: int
    rank_b: int
    host_a: str | None
    host_b: str | None
    latency: float  # s
    times: float  # over the median of its class
    slow: bool

    @property
    def ends(self) -> tuple[str, str]:
        """What it is a link of: hosts, or ranks where they share one or it is not known."""
        if self.host_a is None or self.host_b is None or self.host_a == self.host_b:
            on = f" on {self.host_a}" if self.host_a else ""
            return f"rank {self.rank_a}{on}", f"rank {self.rank_b}{on}"
        first, other = sorted((self.host_a, self.host_b))
        return first, other


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

    row: Row
    kind: str
    runs: int
    typical: float  # s
    links: Sequence[Link]
    judged: bool  # there are enough of them
    slow_hosts: Sequence[str]

    @property
    def slow(self) -> list[Link]:
        """The slow ones, slowest first, but for those of slow hosts."""
        links = [
            link for link in self.links if link.slow and not set(link.ends) & set(self.slow_hosts)
        ]
        return sorted(links, key=lambda link: -link.times)

    @property
    def of_several_kinds(self) -> bool:
        """Whether so many are slow that they are of another kind rather than broken."""
        return len(self.slow) > FEW * len(self.links)


def link_classes(results: ExperimentResults) -> list[LinkClass]:
    """The classes of links of each point, those between hosts first."""
    names = {name: link_column(name, results.axes) for name in NAMES}
    groups: dict[Key, dict[str, list[tuple[str, Pair, Row]]]] = {}
    for row in results.rows("links"):
        pair = Pair(**{name: row[names[name]] for name in Pair.__annotations__})
        group = groups.setdefault((*results.key(row, results.axes), row["source"]), {})
        group.setdefault(str(row[names["link"]]), []).append((str(row["run_id"]), pair, row))
    return [
        _class(names, kind, members)
        for group in groups.values()
        for kind, members in sorted(group.items())
    ]


def _class(names: dict[str, str], kind: str, members: Sequence[tuple[str, Pair, Row]]) -> LinkClass:
    by_ends: dict[tuple[str, str], list[tuple[str, Pair]]] = {}
    for run, pair, _ in members:
        by_ends.setdefault(pair.ends, []).append((run, pair))
    links = []
    for ends, pairs in by_ends.items():
        runs = {run for run, _ in pairs}
        slow = {run for run, pair in pairs if pair.slow}
        values = median(pair.latency for _, pair in pairs), median(p.times for _, p in pairs)
        links.append(Link(ends, *values, len(runs), 2 * len(slow) > len(runs)))
    typical = median(float(row[names["typical"]]) for _, _, row in members)
    judged = len(links) >= FEWEST_LINKS and finite(members[0][2][names["threshold"]])
    hosts = _slow_hosts(links) if kind == BETWEEN else []
    runs_in_all = len({run for run, _, _ in members})
    return LinkClass(members[0][2], kind, runs_in_all, typical, links, judged, hosts)


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


def pairs_of_run(results: ExperimentResults, row: Row, run_id: str) -> list[Pair]:
    """The pairs of one run of a point."""
    names = {name: link_column(name, results.axes) for name in Pair.__annotations__}
    return [
        Pair(**{name: entry[title] for name, title in names.items()})
        for entry in results.rows("links")
        if entry["run_id"] == run_id
        and results.key(entry, results.axes) == results.key(row, results.axes)
    ]
