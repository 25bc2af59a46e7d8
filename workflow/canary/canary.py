"""What a machine does right now: a second of matrix products and of copies, on every core of a run.

    python canary.py --out FOLDER --workers N

Started as the program of a run is, before it and after it, under the site's Python; needs NumPy.
Each rank has so many processes of one thread each as it has cores: on a node there are then equally
many whatever its ranks, and runs of different rank counts can be compared. Each process leaves
``<host>-<process>.json`` in the folder: its host, and its median rates of float32 matrix products
(FLOP/s, a multiply-add being two) and of copies between arrays that caches do not hold (bytes/s,
read and written).
"""

import argparse
import json
import os
import socket
import statistics
import time
from pathlib import Path

SECONDS = 0.6  # of each kind
SIZE = 512  # rows of the matrices
COPIED = 16 << 20  # bytes of each array


def typical(work, seconds: float) -> float:
    """The median of the seconds of a call of ``work``, called for so long and three times."""
    work()  # pages are touched
    taken, until = [], time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def measure(np, out: Path, seconds: float) -> None:
    """Measure in this process, and leave what was found by rename."""
    matrices = [np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3)]
    arrays = [np.full(COPIED, 1, np.uint8) for _ in range(2)]  # untouched pages would be one
    compute = 2 * SIZE**3 / typical(lambda: np.matmul(*matrices[:2], out=matrices[2]), seconds)
    memory = 2 * COPIED / typical(lambda: np.copyto(*arrays), seconds)
    path = out / f"{socket.gethostname()}-{os.getpid()}.json"
    partial = path.with_suffix(".part")
    partial.write_text(
        json.dumps({"host": socket.gethostname(), "compute": compute, "memory": memory})
    )
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
    import numpy as np

    args.out.mkdir(parents=True, exist_ok=True)
    children = []
    for _ in range(args.workers - 1):
        child = os.fork()
        if child == 0:
            measure(np, args.out, args.seconds)
            os._exit(0)  # nothing of the parent's is to be ended twice
        children.append(child)
    measure(np, args.out, args.seconds)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
