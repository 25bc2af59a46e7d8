"""TALP's JSON report (DLB 3.x): a region for each monitored part, and times of every process.

Times are nanoseconds, efficiencies have two decimals (bsc-pm/dlb, src/talp/talp_output.c).
Regions are under ``Application`` (``popMetrics``, also as a list, in older versions), processes
under ``Process`` (``node``, without regions, in older versions).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.pop import PopFactors, rank_factors
from scalesweep.analysis.profile import Profile, RankTimes
from scalesweep.core.formatting import finite
from scalesweep.importers.imported_run import ImportRefusedError
from scalesweep.importers.profiles.source import ReadResult, metric, read_each, text_of

GLOBAL = "Global"
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
    try:
        content = json.loads(text_of(file))
        regions = _regions(content)
        processes = _processes(content)
        resources = content.get("resources") or {}
        alone = processes.get("") if len(regions) == 1 else None
        return [
            _profile(file, name, region, processes.get(name) or alone, resources, ranks)
            for name, region in regions.items()
        ]
    except json.JSONDecodeError as error:
        raise ImportRefusedError(f"not JSON ({error.msg}): cut off?", error.lineno) from None
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ImportRefusedError(f"not as TALP writes it ({error!r:.80})") from None


def _regions(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Metrics by region, of any version's form."""
    held: Any = next((content[key] for key in ("Application", "popMetrics") if key in content), {})
    if isinstance(held, list):
        if len({region["name"] for region in held}) < len(held):
            raise ImportRefusedError("a region is there twice")
        held = {region["name"]: region for region in held}
    if not held:
        raise ImportRefusedError("holds no region with metrics")
    return dict(held)


def _processes(content: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Entries of the processes by region, by rank; under an empty name where no region is told."""
    held: Any = next(
        (of for key, of in content.items() if key.lower() in ("process", "processes")), {}
    )
    processes: dict[str, list[Mapping[str, Any]]] = {}
    for region, entries in held.items():
        processes[region] = sorted(entries, key=lambda entry: int(entry["rank"]))
        if [entry["rank"] for entry in processes[region]] != list(range(len(entries))):
            raise ImportRefusedError(f"processes of region {region[:40]!a} are not ranks 0 to n-1")
    if not processes and isinstance(content.get("node"), list):
        processes[""] = [process for node in content["node"] for process in node["process"]]
    return processes


def _profile(
    file: Path,
    name: str,
    region: Mapping[str, Any],
    processes: Sequence[Mapping[str, Any]] | None,
    resources: Mapping[str, Any],
    ranks: int | None,
) -> Profile:
    """The profile of one region: times in seconds, and efficiencies as TALP states them, or of the
    times of its processes (by rank, None where the file has none).

    Raises ImportRefusedError if it has no elapsed time, or another number of processes than ranks.
    """
    where = f"region {name}"
    elapsed = _time(region, "elapsedTime", where)
    if not elapsed:
        raise ImportRefusedError(f"{where}: has no elapsed time")
    mpi = region.get("numMpiRanks") or resources.get("numMpiRanks")
    # Of a program without MPI, TALP states 0 ranks; its file is of one process.
    stated = 1 if mpi == 0 and not processes and ranks is None else int(mpi or 0)
    ranks = stated or (len(processes) if processes else None) or ranks
    if processes and ranks != len(processes):
        raise ImportRefusedError(f"{where}: {ranks} ranks, but {len(processes)} processes")
    metrics = {"runtime": metric(elapsed, "s", "lower")}
    for key, total in (("usefulTime", "useful_time_total"), ("mpiTime", "mpi_time_total")):
        if (value := _time(region, key, where)) is not None:
            metrics[total] = metric(value, "s", "lower")
    efficiencies = _efficiencies(region, where)
    notes: dict[str, object] = {"efficiencies": "as TALP prints them, two decimals"}
    times = _rank_times(processes, elapsed, where) if processes else None
    factors = None
    if processes and times and all(process.get("numCpus", 1) == 1 for process in processes):
        factors = _factors(times, efficiencies, where)
        notes["efficiencies"] = "parallel, load balance, communication: of the times of the ranks"
    metrics |= {it: metric(value, "1", "higher") for it, value in efficiencies.items()}
    return Profile(
        tool="talp",
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
    if isinstance(value, bool) or not finite(value) or not 0 <= value < 1e19:
        raise ImportRefusedError(f"{where}: {key} is {value!r:.30}, no time in nanoseconds")
    return float(value) * 1e-9


def _efficiencies(region: Mapping[str, Any], where: str) -> dict[str, float]:
    efficiencies: dict[str, float] = {}
    for key, name in _EFFICIENCIES.items():
        value = region.get(key) or 0  # TALP writes 0 for what it did not measure
        if isinstance(value, bool) or not finite(value) or not 0 <= value < 100:
            raise ImportRefusedError(f"{where}: {key} is {value!r:.30}, no efficiency")
        if value:
            efficiencies[name] = float(value)
    return efficiencies


def _rank_times(
    processes: Sequence[Mapping[str, Any]], elapsed: float, where: str
) -> RankTimes | None:
    useful, mpi, own = (
        [_time(process, key, where) for process in processes]
        for key in ("usefulTime", "mpiTime", "elapsedTime")
    )
    if None in useful or None in mpi:
        raise ImportRefusedError(f"{where}: a process without usefulTime or mpiTime")
    whole = [elapsed if time is None else time for time in own]
    times = RankTimes(*(np.array(values, np.float64) for values in (whole, useful, mpi)))
    return times if bool((times.useful > 0).any()) else None


def _factors(times: RankTimes, efficiencies: dict[str, float], where: str) -> PopFactors:
    """From the times of the ranks, in full precision, which replace those that TALP states; raises
    ImportRefusedError where they do not agree."""
    factors = rank_factors(times.useful, times.runtime)
    own = {
        "parallel_efficiency": factors.parallel,
        "load_balance": factors.load_balance,
        "communication_efficiency": factors.communication,
    }
    for name, value in own.items():
        if abs(efficiencies.get(name, value) - value) > _AGREE:
            raise ImportRefusedError(
                f"{where}: {name} is stated as {efficiencies[name]:.2f}, the times of the ranks "
                f"give {value:.4f}"
            )
    efficiencies |= own
    return factors
