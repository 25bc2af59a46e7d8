"""Findings on probes: what the machine could do at best, and what its network is like."""

from collections.abc import Sequence

from scalesweep.aspects.probes.ceilings import Ceiling, ceilings
from scalesweep.aspects.probes.table import NetworkRow
from scalesweep.core.formatting import scaled_unit, text_of, with_interval
from scalesweep.experiment.results import ExperimentResults, Key
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    estimate_of,
    evidence_of,
    number_of,
)
from scalesweep.table.declared import numbers_of

CEILING, NETWORK, FLAT = "ceiling", "network", "network latency"
# A formula that is further from sizes left out of the fit than this does not describe the network.
NEAR = 0.25


def machine_ceilings(results: ExperimentResults) -> list[Finding]:
    """The best run of each kind of work as its ceiling, with its interval.

    Confirmed only where enough undisturbed runs agree, and the rate had stopped growing.
    """
    return [_ceiling(results, ceiling) for ceiling in ceilings(results)]


def _ceiling(results: ExperimentResults, ceiling: Ceiling) -> Finding:
    evidence = evidence_of(results, "points", ceiling.row) | {"figure": "sweep"}
    return Finding(
        results.name,
        CEILING,
        OPEN if ceiling.open else CLEAR,
        subject=f" of {ceiling.what}" if ceiling.what else "",
        words={"how": f" ({ceiling.how})" if ceiling.how else ""},
        numbers=(number_of("ceiling", ceiling.best.rate.value, ceiling.unit, *ceiling.ends),),
        reason=ceiling.open,
        evidence=evidence,
    )


def network_fit(results: ExperimentResults) -> list[Finding]:
    """Latency and bandwidth of each series of allreduces, and the algorithms that may be at work.

    A note where the sizes show no bandwidth.
    """
    series: dict[Key, list[NetworkRow]] = {}
    for row in results.of(NetworkRow):
        series.setdefault(results.key(row.place, row.place), []).append(row)
    return [_network(results, ranges) for ranges in series.values()]


def latency_words(fit: NetworkRow) -> str:
    """Latency with its interval, in µs."""
    value, low, high = numbers_of(fit.latency, 1e6)
    return with_interval(value, low, high, "µs")


def bandwidth_words(fit: NetworkRow) -> str:
    """Bandwidth with its interval; empty where the sizes show none."""
    if fit.bandwidth is None:
        return ""
    factor, unit = scaled_unit("bytes/s", fit.bandwidth.value)
    value, low, high = numbers_of(fit.bandwidth, factor)
    return with_interval(value, low, high, unit)


def _network(results: ExperimentResults, ranges: Sequence[NetworkRow]) -> Finding:
    """Latency of the smallest messages and bandwidth of the largest; clear where both have
    intervals and the fit is near its points."""
    first, last = ranges[0], ranges[-1]
    near = max(fit.error for fit in ranges) <= NEAR
    known = None not in (first.latency.low, last.bandwidth and last.bandwidth.low)
    numbers = [estimate_of("latency", first.latency, "s")]
    if last.bandwidth:
        numbers.append(estimate_of("bandwidth", last.bandwidth, "bytes/s"))
    return Finding(
        results.name,
        NETWORK if last.bandwidth else FLAT,
        NOTE if not last.bandwidth else CLEAR if known and near else OPEN,
        subject="".join(f"{name} {text_of(value)}, " for name, value in first.point.items()),
        words={
            "latency_words": latency_words(first),
            "bandwidth_words": bandwidth_words(last),
            "algorithm": last.algorithms,
        },
        numbers=tuple(numbers),
        reason="" if near else "no formula is near all sizes",
        evidence={
            "experiment": results.name,
            "table": NetworkRow.TABLE,
            "key": first.place,
            "figure": "network",
        },
    )


RULES = (
    Rule(
        CEILING, machine_ceilings,
        says={CLEAR: "The ceiling{subject} is {ceiling}{how}."},
        next={OPEN: "measure five runs on a quiet machine, at larger sizes if it grows"},
    ),
    Rule(
        NETWORK, network_fit,
        says={CLEAR: "{subject}allreduce as a {algorithm} has a latency of {latency_words} and a "
              "bandwidth of {bandwidth_words}."},
    ),
    Rule(
        FLAT, None,
        says={NOTE: "{subject}allreduce has a latency of {latency_words}; its sizes show no "
              "bandwidth."},
    ),
)  # fmt: skip
