"""TALP's JSON report (DLB 3.x): a region for each monitored part, and times of every process.

Times are nanoseconds, efficiencies have two decimals (bsc-pm/dlb, src/talp/talp_output.c).
Regions are under ``Application`` (``popMetrics``, also as a list, in older versions), processes
under ``Process`` (``node``, without regions, in older versions).
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.pop import PopFactors, rank_factors
from scalesweep.analysis.profile import Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import (
    ReadResult,
    metric,
    read_each,
    text_of,
)

TOOL = "talp"
GLOBAL = "Global"
_NS = 1e-9
# What TALP calls an efficiency -> metric.
_EFFICIENCIES = {
    "parallelEfficiency": "parallel_efficiency",
    "communicationEfficiency": "communication_efficiency",
    "loadBalance": "load_balance",
    "lbIn": "load_balance_in_nodes",
    "lbOut": "load_balance_between_nodes",
    "mpiParallelEfficiency": "mpi_parallel_efficiency",
    "mpiCommunicationEfficiency": "communication_efficiency",
    "mpiLoadBalance": "load_balance",
    "mpiLoadBalanceIn": "load_balance_in_nodes",
    "mpiLoadBalanceOut": "load_balance_between_nodes",
    "ompParallelEfficiency": "openmp_parallel_efficiency",
    "ompLoadBalance": "openmp_load_balance",
    "ompSchedulingEfficiency": "openmp_scheduling_efficiency",
    "ompSerializationEfficiency": "openmp_serialisation_efficiency",
}
_AGREE = 0.011  # of what has two decimals, and of times that begin and end a little apart


def recognise(head: str) -> bool:
    """Whether a file begins as TALP's JSON does."""
    start = head.lstrip()
    words = ('"dlbVersion"', '"popMetrics"', '"parallelEfficiency"')
    return start.startswith("{") and any(word in start for word in words)


def read(files: Sequence[Path], ranks: int | None = None) -> ReadResult:
    """A profile of each region of each file; ``ranks`` where it does not state them."""
    return read_each(files, lambda file: _profiles(file, ranks))


def _profiles(file: Path, ranks: int | None) -> list[Profile]:
    content = _json(text_of(file))
    regions = _regions(content)
    if not regions:
        raise ImportRefusedError("holds no region with metrics")
    processes = _processes(content)
    resources = content.get("resources")
    return [
        _profile(
            file,
            name,
            region,
            processes.get(name) or (processes.get("") if len(regions) == 1 else None),
            resources if isinstance(resources, dict) else {},
            ranks,
        )
        for name, region in regions.items()
    ]


def _json(text: str) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(items)) < len(items):
            raise ImportRefusedError("a key is there twice")
        return dict(items)

    def constant(word: str) -> float:
        raise ImportRefusedError(f"holds {word}, which is no number")

    try:
        content = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        raise ImportRefusedError(f"not JSON ({error.msg}): cut off?", error.lineno) from None
    except (RecursionError, ValueError):
        raise ImportRefusedError("not JSON of TALP: nested too deeply, or absurd numbers") from None
    if not isinstance(content, dict):
        raise ImportRefusedError("not an object")
    return content


def _regions(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Metrics by region, of any version's form."""
    regions: dict[str, Mapping[str, Any]] = {}
    held: Any = next((content[key] for key in ("Application", "popMetrics") if key in content), {})
    if isinstance(held, list):
        for region in held:
            if not isinstance(region, dict) or not isinstance(region.get("name"), str):
                raise ImportRefusedError("a region without a name")
            if region["name"] in regions:
                raise ImportRefusedError(f"region {region['name'][:40]!r} is there twice")
            regions[region["name"]] = region
    elif isinstance(held, dict):
        regions = held
    for name, region in regions.items():
        if not isinstance(region, dict) or not name.isprintable() or len(name) > 128:
            raise ImportRefusedError(f"region {name[:40]!a} has no metrics")
    return regions


def _processes(content: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Entries of the processes by region, by rank; under an empty name where no region is told."""
    processes: dict[str, list[Mapping[str, Any]]] = {}
    held: Any = next(
        (content[key] for key in content if key.lower() in ("process", "processes")), {}
    )
    for region, entries in held.items() if isinstance(held, dict) else ():
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ImportRefusedError(f"processes of region {region[:40]!a} are no list")
        numbers = [entry.get("rank") for entry in entries]
        if sorted(map(str, numbers)) != sorted(map(str, range(len(entries)))):
            raise ImportRefusedError(f"processes of region {region[:40]!a} are not ranks 0 to n-1")
        processes[region] = sorted(entries, key=lambda entry: entry["rank"])
    nodes = content.get("node")
    if not processes and isinstance(nodes, list):
        try:
            processes[""] = [process for node in nodes for process in node["process"]]
        except (KeyError, TypeError):
            raise ImportRefusedError("nodes without processes") from None
        if not all(isinstance(process, dict) for process in processes[""]):
            raise ImportRefusedError("nodes without processes")
    return processes


def _profile(
    file: Path,
    name: str,
    region: Mapping[str, Any],
    processes: Sequence[Mapping[str, Any]] | None,
    resources: Mapping[str, Any],
    ranks: int | None,
) -> Profile:
    """The profile of one region: times in seconds, and efficiencies as exact as its times allow.

    ``processes`` are the entries of its processes by rank, None where the file has none. Raises
    ImportRefusedError if it has no elapsed time, or another number of processes than ranks.
    """
    where = f"region {name}"
    elapsed = _time(region, "elapsedTime", where)
    if elapsed is None or elapsed <= 0:
        raise ImportRefusedError(f"{where}: has no elapsed time")
    mpi = region.get("numMpiRanks") or resources.get("numMpiRanks")
    # Of a program without MPI, TALP states 0 ranks; its file is of one process.
    stated = 1 if mpi == 0 and not processes and ranks is None else _count(mpi, where)
    ranks = stated or (len(processes) if processes else None) or ranks
    if processes and ranks != len(processes):
        raise ImportRefusedError(f"{where}: {ranks} ranks, but {len(processes)} processes")
    metrics = {"runtime": metric(elapsed, "s", "lower")}
    for key, total in (("usefulTime", "useful_time_total"), ("mpiTime", "mpi_time_total")):
        if (value := _time(region, key, where)) is not None:
            metrics[total] = metric(value, "s", "lower")
    stated_values = _efficiencies(region, where)
    exact = {
        name: value
        for name, value in _of_times(region, elapsed, resources, stated_values, where).items()
        if abs(value - stated_values[name]) <= _AGREE
    }
    values = stated_values | exact
    metrics |= {name: metric(value, "1", "higher") for name, value in values.items()}
    times = _rank_times(processes, elapsed, where) if processes else None
    printed = [name for name in stated_values if name not in exact]
    notes: dict[str, object] = {"efficiencies": "of the region's times, in full precision"}
    if printed:
        notes["efficiencies"] = f"as TALP prints them, two decimals: {', '.join(printed)}"
    factors = None
    if processes and times and all(process.get("numCpus", 1) == 1 for process in processes):
        factors = _factors(times, stated_values, where, notes)
        metrics |= {
            "parallel_efficiency": metric(factors.parallel, "1", "higher"),
            "load_balance": metric(factors.load_balance, "1", "higher"),
            "communication_efficiency": metric(factors.communication, "1", "higher"),
        }
    return Profile(
        tool=TOOL,
        file=file,
        ranks=ranks,
        elapsed_s=elapsed,
        region="" if name == GLOBAL else name,
        rank_times=times,
        factors=factors,
        metrics=metrics,
        notes=notes,
    )


def _time(held: Mapping[str, Any], key: str, where: str) -> float | None:
    """Seconds of a time in nanoseconds; None where it is not there."""
    value = held.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e19:
        raise ImportRefusedError(f"{where}: {key} is {value!r:.30}, no time in nanoseconds")
    return float(value) * _NS


def _count(value: Any, where: str) -> int | None:
    if value is None or value == 0:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10_000_000:
        raise ImportRefusedError(f"{where}: {value!r:.30} ranks")
    return value


def _efficiencies(region: Mapping[str, Any], where: str) -> dict[str, float]:
    efficiencies: dict[str, float] = {}
    for key, name in _EFFICIENCIES.items():
        value = region.get(key)
        if value is None:
            continue
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not 0 <= value < 100:
            raise ImportRefusedError(f"{where}: {key} is {value!r:.30}, no efficiency")
        if value > 0:  # TALP writes 0 for what it did not measure
            efficiencies[name] = float(value)
    return efficiencies


def _of_times(
    region: Mapping[str, Any],
    elapsed: float,
    resources: Mapping[str, Any],
    stated: Mapping[str, float],
    where: str,
) -> dict[str, float]:
    """The efficiencies that TALP prints with two decimals, of the times beside them.

    bsc-pm/dlb, src/talp/perf_metrics.c: perf_metrics__compute_hybrid_model_v2, and _v1 for the
    parallel efficiency of MPI where that fits what is printed better.
    """

    def time(key: str) -> float:
        return _time(region, key, where) or 0.0

    cpus = _count(region.get("numCpus") or resources.get("numCpus"), where)
    useful, mpi, device = time("usefulTime"), time("mpiTime"), time("gpuRuntimeTime")
    imbalance, scheduling = time("ompLoadImbalanceTime"), time("ompSchedulingTime")
    serial = time("ompSerializationTime")
    if not useful:
        return {}
    outside = useful + mpi + device
    active = outside + imbalance + scheduling + serial
    efficiencies = {
        "parallel_efficiency": useful / active,
        "openmp_parallel_efficiency": outside / active,
        "openmp_load_balance": (outside + serial) / (outside + serial + imbalance),
        "openmp_scheduling_efficiency": (outside + serial + imbalance) / active,
        "openmp_serialisation_efficiency": outside / (outside + serial),
    }
    if cpus and _time(region, "mpiTime", where) is not None:
        without = elapsed - mpi / cpus
        by_model = (without / elapsed, useful / (useful + mpi))
        wanted = stated.get("mpi_parallel_efficiency", by_model[0])
        efficiencies["mpi_parallel_efficiency"] = min(
            by_model, key=lambda value: abs(value - wanted)
        )
        most = elapsed - time("minMpiNormdProc")
        node = elapsed - time("minMpiNormdNode")
        if "minMpiNormdProc" in region and most > 0 and node > 0:
            efficiencies["communication_efficiency"] = most / elapsed
            efficiencies["load_balance"] = without / most
            efficiencies["load_balance_in_nodes"] = node / most
            efficiencies["load_balance_between_nodes"] = without / node
    return {name: value for name, value in efficiencies.items() if name in stated}


def _rank_times(
    processes: Sequence[Mapping[str, Any]], elapsed: float, where: str
) -> RankTimes | None:
    useful = [_time(process, "usefulTime", where) for process in processes]
    mpi = [_time(process, "mpiTime", where) for process in processes]
    own = [_time(process, "elapsedTime", where) for process in processes]
    if None in useful or None in mpi:
        raise ImportRefusedError(f"{where}: a process without usefulTime or mpiTime")
    whole = [elapsed if time is None else time for time in own]
    times = RankTimes(*(np.array(values, np.float64) for values in (whole, useful, mpi)))
    return times if bool((times.useful > 0).any()) else None


def _factors(
    times: RankTimes, stated: Mapping[str, float], where: str, notes: dict[str, object]
) -> PopFactors:
    """From the times of the ranks, in full precision; they must agree with what TALP states."""
    factors = rank_factors(times.useful, times.runtime)
    own = {
        "parallel_efficiency": factors.parallel,
        "load_balance": factors.load_balance,
        "communication_efficiency": factors.communication,
    }
    for name, value in own.items():
        if name in stated and abs(stated[name] - value) > _AGREE:
            raise ImportRefusedError(
                f"{where}: {name} is stated as {stated[name]:.2f}, the times of the ranks give "
                f"{value:.4f}"
            )
    notes["efficiencies"] = "parallel, load balance and communication: of the times of the ranks"
    return factors
