"""Findings on probes: what the machine could do at best, and what its network is like."""

from collections.abc import Sequence

from scalesweep.aspects.probes.ceilings import RUN, Ceiling, ceilings, networks, supported
from scalesweep.aspects.probes.table import NetworkRow
from scalesweep.core.formatting import scaled_unit, text_of, with_interval
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CLEAR,
    NOTE,
    OPEN,
    Finding,
    Rule,
    columns_of,
    evidence_of,
    marked,
)
from scalesweep.table.declared import numbers_of

CEILING, NETWORK = "ceiling", "network"
# A formula that is further from sizes left out of the fit than this does not describe the network.
NEAR = 0.25


def machine_ceilings(results: ExperimentResults) -> list[Finding]:
    """The best run of each kind of work as its ceiling, with its interval.

    Confirmed only where enough undisturbed runs agree, and the rate had stopped growing.
    """
    return [_ceiling(results, ceiling) for ceiling in ceilings(results)]


def _ceiling(results: ExperimentResults, ceiling: Ceiling) -> Finding:
    main = results.main
    assert main is not None
    kind = f" of {ceiling.what}" if ceiling.what else ""
    text = f"the ceiling{kind} is {with_interval(ceiling.best.value, *ceiling.ends, ceiling.unit)}"
    text += f" ({ceiling.how})" if ceiling.how else ""
    text += f"; not confirmed: {ceiling.open}" if ceiling.open else ""
    evidence = evidence_of(results, "points", ceiling.row, columns_of(main, RUN))
    level = OPEN if ceiling.open else CLEAR
    text = marked(ceiling.row["source"], f"{text}.")
    return Finding(results.name, CEILING, level, text, evidence | {"figure": "sweep"})


def network_fit(results: ExperimentResults) -> list[Finding]:
    """Latency and bandwidth of each series of allreduces, and the algorithms that may be at work.

    A note where the sizes show no bandwidth.
    """
    return [_network(results, ranges) for ranges in networks(results)]


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
    head = ", ".join(f"{name} {text_of(value)}" for name, value in first.point.items())
    near = max(fit.error for fit in ranges) <= NEAR
    bandwidth = bandwidth_words(last)
    text = f"{f'with {head}, ' if head else ''}allreduce has a latency of {latency_words(first)}"
    text += f" and a bandwidth of {bandwidth}" if bandwidth else "; its sizes show no bandwidth"
    text += f", as a {' or '.join(supported(results, last))}"
    text += "" if near else "; not confirmed: no formula is near all sizes"
    known = None not in (first.latency.low, last.bandwidth and last.bandwidth.low)
    level = NOTE if not bandwidth else CLEAR if known and near else OPEN
    evidence = {
        "experiment": results.name,
        "table": NetworkRow.TABLE,
        "key": first.place,
        "numbers": {
            "latency": first.latency.value,
            "bandwidth": last.bandwidth.value if last.bandwidth else None,
        },
        "figure": "network",
    }
    return Finding(results.name, NETWORK, level, marked(first.source, f"{text}."), evidence)


RULES = (
    Rule(CEILING, machine_ceilings, figures=("sweep",)),
    Rule(NETWORK, network_fit, figures=("network",)),
)
