"""Energy and power of a run, from the samples of its hosts.

Standard library only. Formulas, what is counted and how accurate it is: docs/guide/energy.md.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalesweep.compute.power.domains import SLACK, SLACK_S, Domain
from scalesweep.compute.power.outcome import nothing
from scalesweep.compute.power.series import Series, series_of

Span = tuple[str, float, float]
PowerRow = tuple[float, str, str, float | None]
# A clock that was moved by more while the program ran has no phases of power.
_STEPPED_S = 0.1
# Notes on what could not be read; the sampler's own file has all.
_MAX_NOTES = 8
_CPU = ("rapl", "pm_counters")  # of several meters of packages the first of these


@dataclass
class Host:
    """What the sampler of a host has left. ``stepped_s``: by how much its clock was moved."""

    name: str
    interval_s: float
    domains: dict[str, Domain]
    series: dict[str, Series]
    missing: str | None
    refused: dict[str, str]
    lost: dict[str, Any]
    samples: int
    cpu_s: float
    stepped_s: float


def read_host(description: Path) -> Host:
    """Read ``power-<host>.json`` and its .csv; raises OSError, ValueError, KeyError."""
    said = json.loads(description.read_bytes())
    domains = {each["name"]: Domain(**each) for each in said["domains"]}
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in domains}
    offset = None
    stepped = 0.0
    path = description.with_suffix(".csv")
    if path.exists():
        with path.open(encoding="ascii") as file:
            next(file, None)
            for line in file:
                # The last line of a sampler that was killed may be a part of one.
                words = line.split(",")
                if len(words) != 4 or not line.endswith("\n") or words[2] not in values:
                    continue
                time, clock = float(words[0]), float(words[1])
                if offset is None:
                    offset = time - clock
                stepped = max(stepped, abs(time - clock - offset))
                number = float(words[3]) if "." in words[3] else int(words[3])
                values[words[2]].append((clock + offset, number))
    interval_s = float(said["interval_s"])
    return Host(
        name=said["host"],
        interval_s=interval_s,
        domains=domains,
        series={
            name: series_of(domains[name], samples, interval_s) for name, samples in values.items()
        },
        missing=said["missing"],
        refused=said["refused"],
        lost=said["lost"],
        samples=said["samples"],
        cpu_s=said["cpu_s"],
        stepped_s=stepped,
    )


def energy_of(
    hosts: Sequence[Host],
    window: tuple[float, float],
    spans: Sequence[Span] = (),
    work: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record's ``energy``: joules of the program, which ran in ``window`` (Unix seconds).

    ``spans``: its phases as (name, start, end). ``work``: ``samples`` that it handled in
    ``phases``, for the joules per sample. ``joules`` is None, and ``missing`` says why, unless
    every domain that counts was watched all the time on every host.
    """
    result = nothing("", max(host.interval_s for host in hosts), [host.name for host in hosts])
    stepped = [host for host in hosts if host.stepped_s > _STEPPED_S]
    holes: list[str] = []
    notes: list[str] = []
    adding: list[Series] = []
    parts: dict[str, frozenset[str]] = {}
    seconds = 0.0
    for host in hosts:
        # After a jump of the clock it is unknown when the program began: take all there is.
        start, end = _whole(host, window) if host in stepped else window
        seconds = max(seconds, end - start)
        joules = {name: series.between(start, end) for name, series in host.series.items()}
        names, said = counted(list(host.domains.values()), joules)
        # Nothing that is on draws no power: a counter that never changes measures nothing. Of DRAM
        # that is so on processors that do not count it. Of a gap it is not known whether it did.
        still = {
            name for name in names
            if not joules[name] and host.series[name].times and not host.series[name].gaps
        }  # fmt: skip
        unused = {name for name in still if host.domains[name].part == "dram" and names - still}
        names -= unused
        said += [f"{name} does not change and is left out" for name in sorted(unused)]
        holes += [f"{name} of {host.name} does not change" for name in sorted(still - unused)]
        notes += [f"{host.name}: {line}" for line in (*said, *_refusals(host))]
        parts[host.name] = frozenset(host.domains[name].part for name in names)
        if not names:
            other = f"no counter of host {host.name} belongs to a known part of the machine"
            holes.append(host.missing or other)
        result["domains"][host.name] = {}
        for name, series in host.series.items():
            known_s = series.known_s(start, end)
            result["domains"][host.name][name] = {
                "joules": joules[name],
                "counted": name in names,
                "seconds": known_s,
            }
            if not _all_known(known_s, end - start):
                line = f"{name} of {host.name} is known for {known_s:.1f} of {end - start:.1f} s"
                why = [host.lost.get(name, ["", ""])[1], *(gap.why for gap in series.gaps)]
                line += "".join(f" ({each})" for each in list(filter(None, why))[:1])
                (holes if name in names else notes).append(line)
            if name in names:
                adding.append(series)
    notes += [f"{h.name}: its clock jumped by {h.stepped_s:.1f} s: no phases" for h in stepped]
    if len(set(parts.values())) > 1:
        notes.append("hosts differ in which parts are counted")
    used = {domain.source for host in hosts for domain in host.domains.values()}
    interval_s = result["interval_s"]
    result |= {
        "sources": sorted(used),
        "sampler_cpu_s": sum(host.cpu_s for host in hosts),
        "samples": sum(host.samples for host in hosts),
        "notes": notes,
        "missing": "; ".join(holes[:3]) + (f"; {len(holes) - 3} more" if holes[3:] else "") or None,
    }
    if all(parts.values()) and not stepped:
        usable = [(name, first, last) for name, first, last in spans if last >= first]
        result["phases"] = _by_phase(adding, usable, interval_s)
        result["joules_per_sample"] = _per_sample(adding, usable, interval_s, work or {})
    if not holes:
        every = [d for domains in result["domains"].values() for d in domains.values()]
        total = sum(domain["joules"] for domain in every if domain["counted"])
        result |= {"joules": total, "seconds": seconds, "mean_watts": total / seconds}
        result["peak_watts"] = None if stepped else _peak(adding, window, interval_s)
    return result


def _whole(host: Host, window: tuple[float, float]) -> tuple[float, float]:
    """From the first value of a host to the last."""
    times = [series.times for series in host.series.values() if series.times]
    if not times:
        return window
    return min(each[0] for each in times), max(each[-1] for each in times)


def _refusals(host: Host) -> list[str]:
    refused = list(host.refused.items())
    more = [f"{len(refused) - _MAX_NOTES} more could not be read"] if refused[_MAX_NOTES:] else []
    return [f"{place}: {why}" for place, why in refused[:_MAX_NOTES]] + more


def _all_known(known_s: float, seconds: float) -> bool:
    return seconds - known_s <= SLACK_S + SLACK * seconds


def _joules(adding: Sequence[Series], spans: Sequence[Span], interval_s: float) -> float | None:
    """Joules of all series in these spans; None where not all is known or the spans are too short.

    Between two samples power is taken to be constant, so spans must last an interval on average;
    spans that follow on each other are one.
    """
    seconds = sum(end - start for _, start, end in spans)
    pieces, last = 0, float("-inf")
    for _, start, end in sorted(spans, key=lambda span: span[1]):
        pieces += start - last > 0.1 * interval_s
        last = max(last, end)
    if not spans or seconds < interval_s * pieces:
        return None
    total = 0.0
    for series in adding:
        known_s = sum(series.known_s(start, end) for _, start, end in spans)
        if not _all_known(known_s, seconds):
            return None
        total += sum(series.between(start, end) for _, start, end in spans)
    return total


def _by_phase(
    adding: Sequence[Series], spans: Sequence[Span], interval_s: float
) -> dict[str, float]:
    names = dict.fromkeys(name for name, _, _ in spans)
    joules_of = {n: _joules(adding, [s for s in spans if s[0] == n], interval_s) for n in names}
    return {name: joules for name, joules in joules_of.items() if joules is not None}


def _per_sample(
    adding: Sequence[Series], spans: Sequence[Span], interval_s: float, work: Mapping[str, Any]
) -> float | None:
    samples, phases = work.get("samples"), work.get("phases")
    if not isinstance(samples, int | float) or samples <= 0 or not isinstance(phases, list):
        return None
    chosen = [span for span in spans if span[0] in phases]
    joules = _joules(adding, chosen, interval_s)
    return None if joules is None else joules / samples


def _peak(adding: Sequence[Series], window: tuple[float, float], interval_s: float) -> float | None:
    """The highest mean power over one interval, among those that lie in the window whole."""
    first = -(-window[0] // interval_s)
    count = int(window[1] // interval_s - first)
    if count < 1:
        return None
    sums = [0.0] * (count + 1)
    for series in adding:
        for i in range(count + 1):
            sums[i] += series.at((first + i) * interval_s)
    return max(right - left for left, right in pairwise(sums)) / interval_s


def power_rows(hosts: Iterable[Host]) -> list[PowerRow]:
    """Rows of power.csv: Unix time, host, domain, watts; by time.

    Watts are None where nothing is known of the time before: at the first value of a counter, and
    after a gap.
    """
    rows = [
        (time, host.name, name, watts)
        for host in hosts
        for name, series in host.series.items()
        for time, watts in zip(series.times, series.watts, strict=True)
    ]
    return sorted(rows, key=lambda row: row[:3])


def counted(domains: Sequence[Domain], joules: Mapping[str, float]) -> tuple[set[str], list[str]]:
    """Names of the domains that count, and what is to be said of the choice.

    ``joules``: what each domain measured. A meter of the whole node is used alone. Without one:
    packages and DRAM (or psys, which holds both), and each GPU once. Cores and uncore are inside
    their package.
    """
    if meters := [d for d in domains if d.part == "node"]:
        more = len(meters) - 1
        said = [f"{more} more meters of the node besides {meters[0].name}"] if more else []
        return {meters[0].name}, said
    cpus, said = _cpus(domains, joules)
    return cpus | _gpus(domains), said


def _cpus(domains: Sequence[Domain], joules: Mapping[str, float]) -> tuple[set[str], list[str]]:
    packages: list[Domain] = []
    for source in _CPU:
        packages = [d for d in domains if d.part == "package" and d.source == source]
        if packages:
            break
    sources = {d.source for d in packages} or {"rapl"}
    memory = [d for d in domains if d.part == "dram" and d.source in sources]
    psys = [d for d in domains if d.part == "psys"]
    inside = sum(joules[d.name] for d in packages)
    if psys and sum(joules[d.name] for d in psys) >= inside:
        return {d.name for d in psys}, []
    said = ["psys counts less than the packages and is left out"] if psys else []
    return {d.name for d in (*packages, *memory)}, said


def _gpus(domains: Sequence[Domain]) -> set[str]:
    gpus = [d for d in domains if d.part == "gpu"]
    chosen = [d for d in gpus if d.source == "nvml"]
    devices, known = {d.device for d in chosen}, bool(chosen)
    for gpu in gpus:
        # Without its address it is unknown whether it was counted already.
        new = gpu.device not in devices if gpu.device else not known
        if gpu.source == "hwmon" and new:
            chosen.append(gpu)
    return {d.name for d in chosen or gpus}
