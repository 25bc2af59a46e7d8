"""Energy and power of a run, from the samples of its hosts, once the program has ended.

Formulas, what is counted and how accurate it is: docs/guide/energy.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalesweep.compute.power import nothing
from scalesweep.compute.power.counters import SLACK, SLACK_S, WATCHED, Domain

Floats = NDArray[np.float64]
Span = tuple[str, float, float]
# What no part of a machine draws, in watts. It tells a counter that was set back from one that
# wrapped, and how often a counter may have wrapped between two readings.
MAX_WATTS = {"psys": 20e3, "package": 2e3, "dram": 1e3, "core": 2e3, "uncore": 2e3, "gpu": 5e3}
_MAX_OTHER = 100e3  # of a node
# Counters are refreshed this often at least (pm_counters: ten times a second), so a difference may
# hold that much more than the time between the readings.
REFRESH_S = 0.25
# So a counter that shows one value for so many seconds, and so many intervals, does not count:
# nothing that is on draws no power. Cores and uncore may be off. Samples are not taken to the ms.
STILL_S, STILL, _CLOSE = 2.0, 2.0, 0.95
_MAY_REST = ("core", "uncore", "other")
_MAX_NOTES = 8  # of a host; the sampler's own file has all


@dataclass
class Series:
    """A domain over time (Unix seconds): its joules since the first value and how many seconds of
    them are known, up to each value; watts there, NaN where unknown; why a time is unknown.

    Of a counter watts are the mean of the interval that ends there, of a sensor its value.
    """

    domain: Domain
    times: Floats
    joules: Floats
    known: Floats
    watts: Floats
    why: str = ""

    def between(self, edges: Sequence[float] | Floats) -> Floats:
        """Joules between consecutive moments, as far as they are known."""
        return np.diff(np.interp(edges, self.times, self.joules))

    def known_s(self, start: float, end: float) -> float:
        """Seconds between two moments in which the domain was watched."""
        return float(np.diff(np.interp([start, end], self.times, self.known))[0])


def series_of(domain: Domain, samples: Floats, interval_s: float) -> Series:
    """The series of a domain from its samples ``[sample, (time, value)]``, in their order."""
    if len(samples) == 0:
        none = np.zeros(1)
        return Series(domain, none, none, none, none, "no value")
    times, values = samples.T
    seconds, change = np.diff(times), np.diff(values)
    reasons: list[tuple[NDArray[np.bool_], str]]
    if domain.kind == "power":
        joules = (values[1:] + values[:-1]) / 2 * seconds
        watts = values.copy()
        reasons = [(seconds > WATCHED * max(interval_s, 0.5), "no value for a time")]
    else:
        wrap, most = domain.wrap, MAX_WATTS.get(domain.part, _MAX_OTHER) * (seconds + REFRESH_S)
        joules = change % wrap if wrap else change
        impossible = (joules < 0) | (joules > most)
        twice = joules + (wrap or np.inf) <= most
        reasons = [
            (twice, f"it may have wrapped several times: its range is {wrap or 0:.3g} J"),
            (impossible & (change < 0), "the counter was set back"),
            (impossible, "the counter jumped"),
            (_still(domain, times, values, interval_s), "the counter stood still"),
        ]
        watts = np.append(np.nan, joules / seconds)
    unknown = np.any([where for where, _ in reasons], axis=0)
    if domain.kind == "counter":
        watts[1:][unknown] = np.nan
    why = next((text for where, text in reasons if where.any()), "")
    total = np.append(0, np.cumsum(np.where(unknown, 0, joules)))
    known = np.append(0, np.cumsum(np.where(unknown, 0, seconds)))
    return Series(domain, times, total, known, watts, why)


def _still(domain: Domain, times: Floats, values: Floats, interval_s: float) -> NDArray[np.bool_]:
    """Intervals in which a counter that counts at other times showed one value for too long."""
    begins = np.flatnonzero(np.append(True, np.diff(values) != 0))
    ends = np.append(begins[1:] - 1, len(values) - 1)
    if len(begins) < 2 or domain.part in _MAY_REST:
        return np.zeros(len(values) - 1, bool)
    stretch = np.repeat(np.arange(len(begins)), ends - begins + 1)
    long = times[ends] - times[begins] >= _CLOSE * max(STILL_S, STILL * interval_s)
    return np.asarray((stretch[1:] == stretch[:-1]) & long[stretch[1:]])


# What the sampler of a host has left in ``power-<host>.json``, and ``series`` by domain's name.
Host = dict[str, Any]


def read_host(description: Path) -> Host:
    """Read ``power-<host>.json`` and its .csv; raises OSError, ValueError, KeyError."""
    said: Host = json.loads(description.read_bytes())
    domains = [Domain(*each) for each in said["domains"]]
    values: dict[str, list[tuple[float, float]]] = {domain.name: [] for domain in domains}
    path = description.with_suffix(".csv")
    # The last line of a sampler that was killed may be a part of one.
    lines = path.read_text().rpartition("\n")[0].splitlines()[1:] if path.exists() else []
    for line in lines:
        time, name, value = line.split(",")
        values[name].append((float(time), float(value)))
    series = {
        domain.name: series_of(domain, np.array(values[domain.name]), said["interval_s"])
        for domain in domains
    }
    return {**said, "series": series, "samples": max(map(len, values.values()), default=0)}


def energy_of(
    hosts: Sequence[Host],
    nodes: int,
    window: tuple[float, float],
    spans: Sequence[Span] = (),
    work: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record's ``energy``: joules of the program, which ran on so many ``nodes`` in ``window``
    (Unix seconds).

    ``spans``: its phases as (name, start, end). ``work``: ``samples`` that it handled in
    ``phases``, for the joules per sample. ``joules`` is None, and ``missing`` says why, unless
    every domain that counts was watched all the time on every host.
    """
    interval_s = max(host["interval_s"] for host in hosts)
    result = nothing("", interval_s, [host["host"] for host in hosts])
    absent = nodes - len(hosts)
    holes = [f"no samples of {absent} of {nodes} nodes"] if absent > 0 else []
    of_hosts = [_add_host(host, window, result, holes) for host in hosts]
    adding = [series for each in of_hosts for series in each]
    every = [series for host in hosts for series in host["series"].values()]
    result |= {
        "sources": sorted({series.domain.source for series in every}),
        "sampler_cpu_s": sum(host["cpu_s"] for host in hosts),
        "samples": sum(host["samples"] for host in hosts),
        "missing": "; ".join(holes[:3]) + "; ..." * (len(holes) > 3) or None,
    }
    if all(of_hosts) and absent <= 0:
        result |= _by_phase(adding, spans, work or {}, interval_s)
    if not holes:
        total, seconds = sum(s.between(window)[0] for s in adding), window[1] - window[0]
        result |= {"joules": float(total), "seconds": seconds, "mean_watts": float(total / seconds)}
        result["peak_watts"] = _peak(adding, window, interval_s)
    return result


def _add_host(
    host: Host, window: tuple[float, float], result: dict[str, Any], holes: list[str]
) -> list[Series]:
    """Add a host's domains and notes, and to ``holes`` why its total is not known; the series that
    count."""
    seconds, every = window[1] - window[0], host["series"]
    names = counted([series.domain for series in every.values()])
    notes = [f"{place}: {why}" for place, why in host["refused"].items()][:_MAX_NOTES]
    joules = {name: float(series.between(window)[0]) for name, series in every.items()}
    still = {name for name in names if not joules[name] and not every[name].why}
    # Processors that do not count DRAM have a counter of it that never changes.
    unused = {name for name in still if every[name].domain.part == "dram" and names - still}
    names -= unused
    notes += [f"{name} does not change and is left out" for name in sorted(unused)]
    holes += [f"{name} of {host['host']} does not change" for name in sorted(still - unused)]
    if not names:
        other = f"no counter of host {host['host']} belongs to a known part of the machine"
        holes.append(host["missing"] or other)
    domains = result["domains"][host["host"]] = {}
    for name, series in every.items():
        known_s = series.known_s(*window)
        domains[name] = {"joules": joules[name], "counted": name in names, "seconds": known_s}
        if not _all_known(known_s, seconds):
            why = host["failed"].get(name) or series.why
            line = f"{name} of {host['host']} is known for {known_s:.1f} of {seconds:.1f} s"
            (holes if name in names else notes).append(f"{line} ({why})" if why else line)
    result["notes"] += [f"{host['host']}: {line}" for line in notes]
    return [every[name] for name in every if name in names]


def counted(domains: Sequence[Domain]) -> set[str]:
    """Names of the domains that count, so that nothing is counted twice.

    A meter of the whole node is used alone. Without one: packages and DRAM of RAPL, else of
    pm_counters; and GPUs, of which pm_counters' only if nothing else reads them. Cores and uncore
    lie inside their package, and all of them inside psys.
    """
    if node := [d.name for d in domains if d.part == "node"]:
        return set(node[:1])
    cpus = [d for d in domains if d.part in ("package", "dram")]
    gpus = [d for d in domains if d.part == "gpu"]
    own = [d for d in cpus if d.source == "rapl"] or cpus
    others = [d for d in gpus if d.source != "pm_counters"] or gpus
    return {domain.name for domain in (*own, *others)}


def _all_known(known_s: float, seconds: float) -> bool:
    return seconds - known_s <= SLACK_S + SLACK * seconds


def _joules(adding: Sequence[Series], spans: Sequence[Span], interval_s: float) -> float | None:
    """Joules of all series in these spans; None where not all is known or the spans are too short.

    Between two samples power is taken to be constant, so spans must last an interval on average;
    spans that follow on each other are one.
    """
    if not spans:
        return None
    begins, ends = np.sort(np.array([span[1:] for span in spans]), axis=0).T
    seconds = float((ends - begins).sum())
    pieces = 1 + (begins[1:] - ends[:-1] > 0.1 * interval_s).sum()
    known = [sum(series.known_s(a, b) for _, a, b in spans) for series in adding]
    if seconds < interval_s * pieces or not all(_all_known(each, seconds) for each in known):
        return None
    return float(sum(series.between(span[1:])[0] for series in adding for span in spans))


def _by_phase(
    adding: Sequence[Series], spans: Sequence[Span], work: Mapping[str, Any], interval_s: float
) -> dict[str, Any]:
    """Joules by phase, and per sample that the program handled."""
    usable = [span for span in spans if span[2] >= span[1]]
    names = dict.fromkeys(name for name, _, _ in usable)
    joules = {n: _joules(adding, [s for s in usable if s[0] == n], interval_s) for n in names}
    samples, phases = work.get("samples"), work.get("phases") or ()
    during = _joules(adding, [span for span in usable if span[0] in phases], interval_s)
    return {
        "phases": {name: value for name, value in joules.items() if value is not None},
        "joules_per_sample": during / samples if during is not None and samples else None,
    }


def _peak(adding: Sequence[Series], window: tuple[float, float], interval_s: float) -> float | None:
    """The highest mean power over one interval, among those that lie in the window whole."""
    edges = np.arange(-(-window[0] // interval_s), window[1] // interval_s + 1) * interval_s
    if len(edges) < 2:
        return None
    every = np.array([series.between(edges) for series in adding])
    return float(every.sum(axis=0).max() / interval_s)


def power_table(hosts: Sequence[Host]) -> str:
    """power.csv: Unix time, host, domain, watts; by time. Empty without a sample.

    Watts are empty where nothing is known of the time before: at the first value of a counter, and
    after a gap.
    """
    rows = sorted(
        (time, host["host"], name, watts)
        for host in hosts
        for name, series in host["series"].items()
        if series.why != "no value"
        for time, watts in zip(series.times.tolist(), series.watts.tolist(), strict=True)
    )
    lines = ["time,host,domain,watts"]
    for unix, host_of, domain, watts in rows:
        stamp = datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds")
        lines.append(f"{stamp},{host_of},{domain},{'' if np.isnan(watts) else f'{watts:.6g}'}")
    return "\n".join(lines) + "\n" if rows else ""
