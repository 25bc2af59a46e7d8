"""The clock of the cores that a process computes on."""

import threading
import time
from pathlib import Path

import pytest

from harness.clocks import Clocks


def cores(folder: Path, clocks: dict[int, str]) -> Path:
    for cpu, text in clocks.items():
        path = folder / f"cpu{cpu}" / "cpufreq"
        path.mkdir(parents=True)
        (path / "scaling_cur_freq").write_text(text)
    return folder


def task(folder: Path, tid: int, state: str, cpu: int) -> None:
    """A thread as /proc has it, with a name that looks like the end of its name."""
    (folder / str(tid)).mkdir(parents=True)
    fields = [state, *["0"] * 35, str(cpu), "0"]
    (folder / str(tid) / "stat").write_text(f"{tid} (a) R 1) {' '.join(fields)}\n")


def test_the_mean_of_the_busy_cores(tmp_path):
    cpus = cores(tmp_path / "cpus", {0: "3000000\n", 1: "2000000\n", 2: "800000\n", 3: "odd"})
    for tid, state, cpu in ((1, "R", 0), (2, "R", 1), (3, "S", 2), (4, "R", 3)):
        task(tmp_path / "tasks", tid, state, cpu)
    with Clocks(cpus, tmp_path / "tasks", 0.04) as clocks:
        time.sleep(0.15)
    assert clocks.mean_mhz == 2500


@pytest.mark.measured
def test_the_thread_that_asks_does_not_count(tmp_path):
    """In this process: only the one that works is on a core, and not on a clock of its own."""
    cpus = cores(tmp_path, dict.fromkeys(range(64), "1000000"))
    over = threading.Event()

    def work():
        while not over.is_set():
            sum(range(1000))

    worker = threading.Thread(target=work)
    worker.start()
    with Clocks(cpus, interval_s=0.04) as clocks:
        time.sleep(0.2)
    over.set()
    worker.join()
    assert clocks.mean_mhz == 1000


def test_where_the_kernel_says_nothing_no_thread_is_started(tmp_path):
    before = threading.active_count()
    with Clocks(tmp_path) as clocks:
        assert threading.active_count() == before
    assert clocks.mean_mhz is None
