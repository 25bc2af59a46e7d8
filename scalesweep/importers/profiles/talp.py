"""TALP's JSON report (DLB 3.x): a region for each monitored part, and times of every process.

Times are nanoseconds, efficiencies have two decimals (bsc-pm/dlb, src/talp/talp_output.c).
Regions are under ``Application``, processes by region under ``Process``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.analysis.pop import rank_factors
from scalesweep.analysis.profile import Profile, RankTimes
from scalesweep.importers.imported_run import ImportRefusedError, metric
from scalesweep.importers.made_benchmark import declared
from scalesweep.importers.profiles.base import each, shares_of, text_of

_AGREE = 0.011  # of what has two decimals, and of times that begin and end a little apart
_Held = Mapping[str, Any]


def sign(head: str) -> bool:
    """Whether a file begins as TALP's JSON does."""
    return head.lstrip().startswith("{") and '"dlbVersion"' in head


def _profiles(file: Path, ranks: int | None) -> Iterator[Profile]:
    """A profile of each region; ``ranks`` if the file does not state them."""
    try:
        content = json.loads(text_of(file))
        for name, region in content["Application"].items():
            stated = region.get("numMpiRanks") or content.get("resources", {}).get("numMpiRanks")
            processes = content.get("Process", {}).get(name, [])
            processes = sorted(processes, key=lambda process: int(process["rank"]))
            if [it["rank"] for it in processes] != list(range(len(processes))):
                raise ImportRefusedError(
                    f"processes of region {name[:40]!a} are not ranks 0 to n-1"
                )
            yield _profile(file, name, {**region, "numMpiRanks": stated}, processes, ranks)
    except json.JSONDecodeError as error:
        raise ImportRefusedError(f"not JSON ({error.msg}): cut off?", error.lineno) from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ImportRefusedError(f"not as TALP writes it ({error!r:.80})") from None


read = each(_profiles)


def _profile(
    file: Path, name: str, region: _Held, processes: Sequence[_Held], ranks: int | None
) -> Profile:
    """A region: times in seconds, and efficiencies as TALP states them, or in full precision of the
    times of its processes (by rank).

    Raises ImportRefusedError if it has another number of processes than ranks, or efficiencies that
    its times do not give.
    """
    where, elapsed = f"region {name}", region["elapsedTime"] * 1e-9
    # Of a program without MPI, TALP states 0 ranks; its file is of one process.
    alone = 1 if region.get("numMpiRanks") == 0 else None
    count = region.get("numMpiRanks") or len(processes) or ranks or alone
    if processes and count != len(processes):
        raise ImportRefusedError(f"{where}: {count} ranks, but {len(processes)} processes")
    metrics = {"runtime": metric(elapsed, "s", "lower")}
    for key, total in (("usefulTime", "useful_time_total"), ("mpiTime", "mpi_time_total")):
        if key in region:
            metrics[total] = metric(region[key] * 1e-9, "s", "lower")
    stated = {
        plain: float(region[key])
        for key, plain in declared("profiles")["talp"].items()
        if region.get(key)  # TALP writes 0 for what it did not measure
    }
    columns = [
        [process.get(key, region["elapsedTime"]) for process in processes]
        for key in ("elapsedTime", "usefulTime", "mpiTime")
    ]
    known = any(columns[1]) and all({"usefulTime", "mpiTime"} <= it.keys() for it in processes)
    times = RankTimes(*(np.array(it, np.float64) * 1e-9 for it in columns)) if known else None
    notes = {"efficiencies": "as TALP prints them, two decimals"}
    if times and all(process.get("numCpus", 1) == 1 for process in processes):
        factors = rank_factors(times.useful, float(times.elapsed.max()))
        notes["efficiencies"] = "parallel, load balance, communication: of the times of the ranks"
        for plain, value in factors.items():
            if abs(stated.get(plain, value) - value) > _AGREE:
                raise ImportRefusedError(
                    f"{where}: {plain} is stated as {stated[plain]:.2f}, the times of the ranks "
                    f"give {value:.4f}"
                )
            stated[plain] = value
    metrics |= shares_of(stated)
    return Profile(
        tool="talp", file=file, ranks=count,
        region="" if name == "Global" else name, rank_times=times,
        metrics=metrics, notes=notes,
    )  # fmt: skip
