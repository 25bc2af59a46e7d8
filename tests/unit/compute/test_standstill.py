"""Time in which the launcher was stopped is told apart from a busy machine's."""

import os
import signal
import subprocess
import sys
import time

import pytest

from scalesweep.compute.standstill import AwakeClock


@pytest.mark.parametrize(
    ("gap_s", "waited_s", "continued", "stood_s"),
    [
        (1.0, 0.0, False, 0.0),
        (1.2, 0.0, True, 0.0),  # SIGCONT comes before SIGTERM, too
        (40.0, 0.0, False, 39.0),
        (40.0, 38.5, False, 0.0),  # a machine with too much to do
        (3.5, 0.0, False, 0.0),  # a page from a slow disk
        (3.5, 0.0, True, 2.5),
        (0.2, 0.0, True, 0.0),
    ],
)
def test_what_is_a_standstill(
    gap_s: float, waited_s: float, continued: bool, stood_s: float
) -> None:
    times, waits = iter([100.0, 100.0 + gap_s, 200.0]), iter([7.0, 7.0 + waited_s])
    clock = AwakeClock(lambda: next(times), lambda: next(waits))
    if continued:
        clock.continued()
    assert clock.beat() == pytest.approx(stood_s)
    assert clock.now() == pytest.approx(200.0 - stood_s)


BEATS = """\
import select, time
from scalesweep.compute.standstill import BEAT_S, AwakeClock
clock = AwakeClock()
with clock.noting_continues():
    print("on", flush=True)
    while not clock.stood_s:
        select.select([], [], [], BEAT_S)
        clock.beat()
print(clock.stood_s, flush=True)
"""


@pytest.mark.slow
def test_a_process_that_is_stopped_knows_for_how_long() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BEATS], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "on\n"
        since = time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(2.5)
        os.kill(process.pid, signal.SIGCONT)
        stood_s = float(process.stdout.readline())
        assert process.wait(10) == 0
    assert 0 < stood_s <= time.monotonic() - since
