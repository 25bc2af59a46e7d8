"""Findings on probes: what the machine could do at best, and what its network is like."""

from collections.abc import Sequence

from scalesweep.core.formatting import (
    finite,
    listed,
    percent,
    scaled_unit,
    size_words,
    text_of,
    with_interval,
)
from scalesweep.experiment.ceilings import RUN, Ceiling, Network, ceilings, networks
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    Finding,
    columns_of,
    evidence_of,
    marked,
    why_unconfirmed,
)

CEILING, NETWORK = "ceiling", "network"
# Below this share of the ceiling a median repeat says that the machine is not at rest.
STEADY = 0.9
# An interval whose ends are further apart than this is not of a ceiling.
WIDE = 1.5
# A formula that is further from sizes left out of the fit than this does not describe the network.
NEAR = 0.25


def machine_ceilings(study: ExperimentResults) -> list[Finding]:
    """The ceiling of each kind of work, with its interval over runs, and how repeats lie below."""
    return [_ceiling(study, one) for one in ceilings(study)]


def _ceiling(study: ExperimentResults, one: Ceiling) -> Finding:
    main = study.main
    assert main is not None
    interval = with_interval(one.value, one.low, one.high, one.unit)
    kind = f" of {one.what}" if one.what else ""
    text = f"the ceiling{kind} is {interval}" + (f" ({one.how})" if one.how else "")
    if one.share is not None:
        text += f"; the median repeat reaches {percent(one.share)} of it"
        if one.share < STEADY:
            text += ", so something else was at work: measure on a quiet machine"
    level = CONFIRMED
    if one.low is None:
        text += f"; not confirmed: {why_unconfirmed(main.without_interval(one.row, RUN))}"
        level = OPEN
    elif one.high is not None and one.high > WIDE * one.low:
        text += "; not confirmed: its runs differ too much"
        level = OPEN
    numbers = columns_of(main, RUN)
    evidence = evidence_of(study, "points", one.row, numbers) | {"figure": "sweep"}
    return Finding(study.name, CEILING, level, marked(one.row["source"], f"{text}."), evidence)


def network_fit(study: ExperimentResults) -> list[Finding]:
    """Latency and bandwidth of each series of allreduces, and the algorithms that may be at work.

    A note where the sizes show neither.
    """
    found: dict[tuple[object, ...], list[Network]] = {}
    for one in networks(study):
        found.setdefault(tuple(one.series.values()), []).append(one)
    return [_network(study, ranges) for ranges in found.values()]


def latency_words(one: Network) -> str:
    """Latency with its interval, in µs."""
    return _interval(one, "latency", 1e6, "µs")


def bandwidth_words(one: Network) -> str:
    """Bandwidth with its interval; empty where the sizes show none."""
    value = one.best["bandwidth"]
    if not finite(value):
        return ""
    factor, unit = scaled_unit("bytes/s", value)
    return _interval(one, "bandwidth", factor, unit)


def _interval(one: Network, name: str, factor: float, unit: str) -> str:
    found = [one.best[key] for key in (name, f"{name}_low", f"{name}_high")]
    value, low, high = (v * factor if finite(v) else None for v in found)
    return with_interval(value, low, high, unit)


def _network(study: ExperimentResults, ranges: Sequence[Network]) -> Finding:
    first, last = ranges[0], ranges[-1]
    names = [name for name in first.series if name != "source"]
    head = ", ".join(f"{name} {text_of(first.series[name])}" for name in names)
    bandwidth = bandwidth_words(last)
    error = max(one.best["error"] for one in ranges)
    sure = finite(first.best["latency_low"], last.best["bandwidth_low"]) and error <= NEAR
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
        text += f"; the fit changes at {listed([size_words(one.low_bytes) for one in ranges[1:]])}"
    text += f"; sizes left out of the fit are predicted within {percent(error)}"
    text += "." if error <= NEAR else ": not confirmed, no formula comes near to all sizes."
    evidence = {
        "experiment": study.name,
        "table": NETWORK,
        "key": dict(first.series),
        "numbers": {"latency": first.best["latency"], "bandwidth": last.best["bandwidth"]},
        "figure": "network",
    }
    level = NOTE if not bandwidth else CONFIRMED if sure else OPEN
    return Finding(study.name, NETWORK, level, marked(first.series["source"], text), evidence)


def _algorithm(one: Network) -> str:
    """Which algorithm the numbers are of, and which the data cannot tell from it."""
    best = str(one.best["algorithm"])
    others = [name for name in one.supported if name != best]
    if not others:
        return f"as a {best}, which the data tell from the others"
    return f"as a {best}; the data cannot tell it from {listed(others)}"
