"""What a machine does right now: some seconds of work on every core of a run.

    python canary.py --out FOLDER --workers N

Started as the program of a run is, before it and after it, under the site's Python: matrix products
of float32 (FLOP/s, a multiply-add being two), and copies between arrays that caches do not hold
(bytes/s, read and written). Each rank has so many processes of one thread each as it has cores: on
a node there are then equally many whatever its ranks. Each process leaves
``<host>-<process>.json`` with its host and its rates, medians over repeats. Needs NumPy.
"""

import argparse
import json
import os
import socket
import statistics
import time
from pathlib import Path

SECONDS = 0.6  # of each kind
MOST = 5.0  # seconds: no further repeat, however few there were
SIZE = 512  # rows of the matrices
COPIED = 16 << 20  # bytes of each array


def typical(work, seconds: float) -> float:
    """The median of the seconds of a call of ``work``, called for so long and three times."""
    work()  # pages are touched
    began = time.perf_counter()
    taken = []
    while (passed := time.perf_counter() - began) < seconds or (len(taken) < 3 and passed < MOST):
        before = time.perf_counter()
        work()
        taken.append(time.perf_counter() - before)
    return statistics.median(taken)


def measure(out: Path, seconds: float) -> None:
    """Compute and copy in this process, and leave the rates by rename."""
    import numpy as np

    matrices = [np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3)]
    arrays = [np.full(COPIED, 1, np.uint8) for _ in range(2)]  # untouched pages would be one

    def multiply() -> None:
        np.matmul(*matrices[:2], out=matrices[2])

    rates = {
        "host": socket.gethostname(),
        "compute": 2 * SIZE**3 / typical(multiply, seconds),
        "memory": 2 * COPIED / typical(lambda: np.copyto(*arrays), seconds),
    }
    path = out / f"{socket.gethostname()}-{os.getpid()}.json"
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(rates))
    partial.rename(path)


def main() -> None:
    """Measure in so many processes at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    args = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # before NumPy reads them
        os.environ[f"{library}_NUM_THREADS"] = "1"
    args.out.mkdir(parents=True, exist_ok=True)
    children = []
    for _ in range(args.workers - 1):
        child = os.fork()
        if child == 0:
            measure(args.out, args.seconds)
            os._exit(0)  # nothing of the parent's is to be ended twice
        children.append(child)
    measure(args.out, args.seconds)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
