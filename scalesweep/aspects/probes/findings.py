"""Findings on probes: what the machine could do at best, and what its network is like."""

from collections.abc import Sequence

from scalesweep.analysis.best_rate import AGREEING, STEADY
from scalesweep.aspects.probes.ceilings import (
    RUN,
    Ceiling,
    Network,
    ceilings,
    fitted_bandwidth,
    networks,
)
from scalesweep.core.formatting import (
    counted,
    listed,
    percent,
    scaled_unit,
    size_words,
    text_of,
    with_interval,
)
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    Finding,
    Rule,
    columns_of,
    evidence_of,
    marked,
)
from scalesweep.table.declared import Estimate

CEILING, NETWORK = "ceiling", "network"
NAMED = 5  # disturbed runs
# An interval whose ends are further apart than this is not of a ceiling.
WIDE = 1.5
# A formula that is further from sizes left out of the fit than this does not describe the network.
NEAR = 0.25


def machine_ceilings(results: ExperimentResults) -> list[Finding]:
    """The best run of each kind of work as its ceiling, with its interval, and the runs that were
    disturbed.

    Confirmed only where enough runs come near to the best one, and the rate had stopped growing
    within the sizes tried.
    """
    return [_ceiling(results, ceiling) for ceiling in ceilings(results)]


def _ceiling(results: ExperimentResults, ceiling: Ceiling) -> Finding:
    """The best rate that a probe reached, in its unit, with how it was measured and whether the
    machine was disturbed."""
    main = results.main
    assert main is not None
    interval = with_interval(ceiling.value, ceiling.low, ceiling.high, ceiling.unit)
    kind = f" of {ceiling.what}" if ceiling.what else ""
    text = f"the ceiling{kind} is {interval}" + (f" ({ceiling.how})" if ceiling.how else "")
    if ceiling.share is not None:
        text += f"; the median repeat reaches {percent(ceiling.share)} of it"
        if ceiling.share < STEADY:
            text += ", so something else was at work: measure on a quiet machine"
    if ceiling.disturbed:
        text += (
            f"; disturbed, below {percent(STEADY)} of the best: {listed(ceiling.disturbed, NAMED)}"
        )
    if ceiling.grows:
        text += (
            f"; the rate still grows towards {ceiling.grows} {ceiling.by}s than those tried, so "
            "the ceiling is higher"
        )
    reason = _why_open(ceiling)
    text += f"; not confirmed: {reason}" if reason else ""
    level = OPEN if reason or ceiling.grows else CONFIRMED
    evidence = evidence_of(results, "points", ceiling.row, columns_of(main, RUN)) | {
        "figure": "sweep"
    }
    return Finding(
        results.name, CEILING, level, marked(ceiling.row["source"], f"{text}."), evidence
    )


def _why_open(ceiling: Ceiling) -> str:
    """Why the value of a ceiling is not confirmed; empty where it is."""
    runs = len(ceiling.runs)
    if runs < AGREEING:
        return f"{counted(runs, 'run')}, {AGREEING} have to agree: what slows every run is not seen"
    if ceiling.best.wanted:
        near = counted(ceiling.best.agreeing, "run")
        return f"only {near} of {runs} within {percent(1 - STEADY)} of the best, {AGREEING} needed"
    if ceiling.low is None:
        return "its runs are identical"
    assert ceiling.high is not None
    return "its runs differ too much" if ceiling.high > WIDE * ceiling.low else ""


def network_fit(results: ExperimentResults) -> list[Finding]:
    """Latency and bandwidth of each series of allreduces, and the algorithms that may be at work.

    A note where the sizes show neither.
    """
    by_series: dict[tuple[object, ...], list[Network]] = {}
    for network in networks(results):
        by_series.setdefault(tuple(network.series.values()), []).append(network)
    return [_network(results, ranges) for ranges in by_series.values()]


def latency_words(network: Network) -> str:
    """Latency with its interval, in µs."""
    return _with_interval(network.best.latency, 1e6, "µs")


def bandwidth_words(network: Network) -> str:
    """Bandwidth with its interval; empty where the sizes show none."""
    bandwidth = network.best.bandwidth
    if bandwidth is None:
        return ""
    return _with_interval(bandwidth, *scaled_unit("bytes/s", bandwidth.value))


def _with_interval(estimate: Estimate, factor: float, unit: str) -> str:
    low, high = (None if end is None else end * factor for end in (estimate.low, estimate.high))
    return with_interval(estimate.value * factor, low, high, unit)


def _network(results: ExperimentResults, ranges: Sequence[Network]) -> Finding:
    """Latency and bandwidth fitted to a collective over its ranges of sizes; clear where both have
    intervals and the fit is near its points."""
    first, last = ranges[0], ranges[-1]
    names = [name for name in first.series if name != "source"]
    head = ", ".join(f"{name} {text_of(first.series[name])}" for name in names)
    bandwidth = bandwidth_words(last)
    error = max(fit.best.error for fit in ranges)
    latency, fitted = first.best.latency, last.best.bandwidth
    sure = None not in (latency.low, fitted and fitted.low) and error <= NEAR
    several = len(ranges) > 1
    text = f"{f'with {head}, ' if head else ''}allreduce takes a latency of {latency_words(first)}"
    text += f" a message (up to {size_words(first.high_bytes)})" if several else " a message"
    if bandwidth:
        text += f" and reaches a bandwidth of {bandwidth}"
        text += f" (from {size_words(last.low_bytes)} on)" if several else ""
    else:
        text += "; larger messages take no longer, so the sizes show no bandwidth"
    text += f", {_algorithm(last)}"
    if several:
        text += f"; the fit changes at {listed([size_words(fit.low_bytes) for fit in ranges[1:]])}"
    text += f"; sizes left out of the fit are predicted within {percent(error)}"
    text += "." if error <= NEAR else ": not confirmed, no formula comes near to all sizes."
    evidence = {
        "experiment": results.name,
        "table": NETWORK,
        "key": dict(first.series),
        "numbers": {"latency": latency.value, "bandwidth": fitted_bandwidth(last)},
        "figure": "network",
    }
    level = NOTE if not bandwidth else CONFIRMED if sure else OPEN
    return Finding(results.name, NETWORK, level, marked(first.series["source"], text), evidence)


def _algorithm(network: Network) -> str:
    """Which algorithm the numbers are of, and which the data cannot tell from it."""
    best = network.best.algorithm
    others = [name for name in network.supported if name != best]
    if not others:
        return f"as a {best}, which the data tell from the others"
    return f"as a {best}; the data cannot tell it from {listed(others)}"


RULES = (
    Rule(machine_ceilings, figures={CEILING: ("sweep",)}),
    Rule(network_fit, figures={NETWORK: ("network",)}),
)
