"""What a machine does right now: a second of matrix products and of copies, on every rank of a run.

    python canary.py --out FOLDER --threads N

Started as the program of a run is, before it and after it, under the site's Python; needs NumPy.
Each rank leaves ``<host>-<process>.json`` in the folder: its host, and the best rates of float32
matrix products (FLOP/s, a multiply-add being two) and of copies between arrays that no cache
holds (bytes/s, read and written).
"""

import argparse
import json
import os
import socket
import time
from pathlib import Path

SECONDS = 0.6  # of each kind
SIZE = 768  # rows of the matrices
COPIED = 64 << 20  # bytes of each array


def best(work, seconds: float) -> float:
    """The least seconds of a call of ``work``, which is called for so long and three times."""
    work()  # pages are touched, threads started
    least, until, calls = float("inf"), time.perf_counter() + seconds, 0
    while calls < 3 or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - began)
        calls += 1
    return least


def main() -> None:
    """Measure, and leave what was found by rename."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    args = parser.parse_args()
    for library in ("OMP", "OPENBLAS", "MKL"):  # before NumPy reads them
        os.environ[f"{library}_NUM_THREADS"] = str(args.threads)
    import numpy as np

    matrices = [np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3)]
    arrays = [np.full(COPIED, 1, np.uint8) for _ in range(2)]  # untouched pages would be one
    compute = 2 * SIZE**3 / best(lambda: np.matmul(*matrices[:2], out=matrices[2]), args.seconds)
    memory = 2 * COPIED / best(lambda: np.copyto(*arrays), args.seconds)
    found = {"host": socket.gethostname(), "compute": compute, "memory": memory}
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{socket.gethostname()}-{os.getpid()}.json"
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(found))
    partial.rename(path)


if __name__ == "__main__":
    main()
