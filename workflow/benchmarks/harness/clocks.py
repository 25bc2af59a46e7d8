"""The clock of the cores that this rank computes on, sampled while it works.

The kernel says at which clock each core is (``cpufreq/scaling_cur_freq``, kHz). Of interest are the
cores on which threads of this process run at the moment, not those that idle: both are asked now
and then, by a thread that costs less than a thousandth of a core. Where the kernel does not say
(most virtual machines) nothing is known, and no thread is started.
"""

import threading
from pathlib import Path
from typing import Self

INTERVAL_S = 2.0
_CPUS = Path("/sys/devices/system/cpu")
_TASKS = Path("/proc/self/task")
# Places behind the name of the command in /proc/<pid>/task/<tid>/stat (proc(5), fields 3 and 39).
_STATE, _PROCESSOR = 0, 36


class Clocks:
    """``with Clocks() as clocks: <work>``; then `mean_mhz` is that of the busy cores."""

    def __init__(
        self, cpus: Path = _CPUS, tasks: Path = _TASKS, interval_s: float = INTERVAL_S
    ) -> None:
        """Keep where to look, and how often; folders are others in tests."""
        self._cpus, self._tasks, self._interval_s = cpus, tasks, interval_s
        self._seen: list[float] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start to sample, if the kernel says anything."""
        if any(self._cpus.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")):
            self._thread = threading.Thread(target=self._watch, name="clocks", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def mean_mhz(self) -> int | None:
        """Mean over the samples and their busy cores, MHz; None where nothing was seen."""
        return round(sum(self._seen) / len(self._seen)) if self._seen else None

    def _watch(self) -> None:
        own, wait_s = str(threading.get_native_id()), self._interval_s / 4
        while not self._over.wait(wait_s):
            wait_s, clocks = self._interval_s, []
            for task in self._tasks.iterdir():
                try:
                    words = (task / "stat").read_text().rpartition(")")[2].split()
                    if task.name != own and words[_STATE] == "R":
                        core = self._cpus / f"cpu{words[_PROCESSOR]}"
                        clocks.append(int((core / "cpufreq/scaling_cur_freq").read_text()) / 1e3)
                except (OSError, ValueError):  # the task has ended, or the clock is not known
                    continue
            if clocks:
                self._seen.append(sum(clocks) / len(clocks))
