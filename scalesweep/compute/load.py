"""How much of the cores other processes took while a program ran, from the kernel's own counts.

Standard library only: two reads of /proc/stat, before and after. Of the cores that the launcher may
use, on the node where it is.
"""

import os
import resource
import time
from pathlib import Path
from typing import Any

from scalesweep.compute.power.counters import host_name

STAT, CGROUPS, OWN_CGROUP = Path("/proc/stat"), Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_LEAST_S = 0.5  # of the clock: counts are in steps of 10 ms a core
# Fields of a line of /proc/stat, proc_stat(5): user nice system idle iowait irq softirq steal; what
# guests take is in user and nice.
_BUSY = (0, 1, 2, 5, 6, 7)

Counts = tuple[float, float, float]


def counts() -> Counts | str:
    """Seconds of the clock, of busy cores, and of them our own; or why they are not known."""
    try:
        return time.monotonic(), busy_seconds(os.sched_getaffinity(0)), own_seconds()
    except (OSError, ValueError, LookupError) as error:
        return f"the kernel's counts cannot be read: {error}"


def load_between(before: Counts | str, after: Counts | str) -> dict[str, Any]:
    """``load`` of a record: what share of ``cores`` others took on ``host`` between two ``counts``.

    ``others`` is None where it is not known, with the reason in ``missing``. Of a run on several
    nodes the launcher's is the first one, and the only one that is looked at.
    """
    cores = len(os.sched_getaffinity(0))
    said = {"others": None, "cores": cores, "host": host_name(), "missing": ""}
    if isinstance(before, str) or isinstance(after, str):
        return said | {"missing": before if isinstance(before, str) else after}
    seconds, busy, own = (late - early for early, late in zip(before, after, strict=True))
    if seconds <= _LEAST_S:
        return said | {"missing": f"it ran for less than {_LEAST_S:g} s"}
    return said | {"others": min(1.0, max(0.0, busy - own) / (seconds * cores))}


def busy_seconds(cores: set[int]) -> float:
    """Seconds in which some cores did anything. Raises OSError, ValueError or LookupError."""
    lines = {
        name: fields for name, *fields in map(str.split, STAT.read_text().splitlines()) if name
    }
    ticks = sum(int(lines[f"cpu{core}"][place]) for core in cores for place in _BUSY)
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU seconds of this launcher and all that it started and waited for; in a Slurm job, whose
    ranks are no children of it, of the job's control group (version 2) on this node."""
    if "SLURM_JOB_ID" not in os.environ:
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(sum(resource.getrusage(who)[:2]) for who in whose)
    own = next((x for x in OWN_CGROUP.read_text().splitlines() if x.startswith("0::")), "")
    head, job, tail = own[3:].partition("/job_")
    if not job:
        raise LookupError("the job has no control group of its own")
    group = CGROUPS / f"{head}{job}{tail.partition('/')[0]}".lstrip("/")
    counts = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(counts["usage_usec"]) / 1e6
