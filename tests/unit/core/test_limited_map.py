"""Work under limits: what exceeds them fails alone, and ends with what has started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.limited_map import Failed, Limits, limited_map

LIMITS = Limits(seconds=30, memory_bytes=100 * 2**20)


def _do(scale: int, item: Any) -> Any:
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "leave":
        os._exit(3)
    if item == "hang":
        time.sleep(3600)
    if item == "grow":
        return len([float(number) for number in range(30_000_000)])
    if item == "wrong":
        raise ValueError("first line\nsecond")
    if item == "full":
        raise OSError(28, "No space left on device", "out.svg")
    if item == "user":
        raise UserError("table: not whole")
    return item * scale


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.slow
def test_what_fails_fails_alone(processes: int) -> None:
    items = [1, "die", 2, "grow", 3, "wrong", "leave", 4]
    found = limited_map(_do, 10, items, processes, LIMITS)
    assert [one for one in found if not isinstance(one, Failed)] == [10, 20, 30, 40]
    assert [one.reason for one in found if isinstance(one, Failed)] == [
        "its process was killed by SIGKILL",
        "it takes more than 0.0976562 GiB of memory",
        "ValueError: first line",
        "its process ended with exit code 3",
    ]
    assert limited_map(_do, 10, [], processes, LIMITS) == []


def test_time_is_limited_for_each_item() -> None:
    found = limited_map(_do, 1, ["hang", 2, 3], 2, Limits(0.3, LIMITS.memory_bytes))
    assert found == [Failed("it takes more than 0.3 s"), 2, 3]


@pytest.mark.parametrize(("item", "error"), [("full", OSError), ("user", UserError)])
def test_what_concerns_all_items_is_raised(item: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        limited_map(_do, 1, [1, item, "hang"], 2, LIMITS)


CALLER = """
import os, signal, time
from scalesweep.core.limited_map import Limits, limited_map

# A shell ignores it for what it starts in the background, tests included.
signal.signal(signal.SIGINT, signal.default_int_handler)

def wait(_work, _item):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(20)

limited_map(wait, None, [1, 2], 2, Limits(20, 2**30))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_its_processes_end_with_it(number: signal.Signals) -> None:
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", CALLER], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as caller:
        assert caller.stdout is not None
        pids = [int(caller.stdout.readline()) for _ in range(2)]
        caller.send_signal(number)
        assert caller.wait(10) != 0
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}/stat").exists() and not _zombie(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True
