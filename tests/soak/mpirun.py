"""Stands in for mpirun: starts a command once per rank, and ends all ranks when one has failed.

Every rank has a session of its own, as under horovodrun: none ends because its launcher does.
"""

import os
import signal
import subprocess
import sys
import time
from typing import Any

ranks, *command = sys.argv[1:]
processes: list["subprocess.Popen[bytes]"] = []


def stop(number: int, _frame: Any) -> None:
    """End every rank, then this."""
    for process in processes:
        process.kill()
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, stop)
for rank in range(int(ranks)):
    env = {**os.environ, "STEPS_RANK": str(rank), "STEPS_RANKS": ranks}
    processes.append(subprocess.Popen(command, env=env, start_new_session=True))
codes: list[int | None] = [None]
while None in codes and not any(codes):
    time.sleep(0.005)
    codes = [process.poll() for process in processes]
for rank, code in enumerate(codes):
    if code:
        print(f"error: rank {rank} ended with {code}", file=sys.stderr)
for process in processes:
    process.kill()
    process.wait()
sys.exit(1 if any(codes) else 0)
