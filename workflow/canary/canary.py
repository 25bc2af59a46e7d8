"""What a machine does right now: some seconds of work on the nodes of a run.

    python canary.py --out FOLDER --workers N [--read FOLDER] [--allreduce[=FRAMEWORK]]

Started as the program of a run is, before it and after it, under the site's Python. In this order:

* matrix products of float32 (FLOP/s, a multiply-add being two) and copies between arrays that
  caches do not hold (bytes/s, read and written). Each rank has so many processes of one thread each
  as it has cores: on a node there are then equally many whatever its ranks, and runs of different
  rank counts can be compared. Needs NumPy.
* reading a file of its own, which the kernel was asked to forget, on each host (bytes/s), with
  `--read` in that folder.
* an allreduce of all ranks, with `--allreduce`, as bus bandwidth (bytes/s): through Horovod on the
  CPU (`tensorflow`, where nothing is said), or through torch.distributed (`torch`), whose ranks
  start and meet as those of a benchmark do (`harness.torch_ranks`): Gloo on CPUs, NCCL on GPUs.

Each process leaves ``<host>-<process>.json`` with its host and its rates, medians over repeats.
What comes after products and copies leaves files of its own, with the rate or why there is none.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import time
from pathlib import Path

SECONDS = 0.6  # of each kind
MOST = 5.0  # seconds: no further repeat, however few there were
SIZE = 512  # rows of the matrices
COPIED = 16 << 20  # bytes of each array
READ, BLOCK = 32 << 20, 1 << 20  # bytes of the file, and of one read
REDUCED = 16 << 20  # bytes of the allreduce
# Settings of a point that would make its allreduce another one; those of the transport stay.
TUNING = ("FUSION", "CYCLE", "CACHE", "HIERARCHICAL", "AUTOTUNE", "TIMELINE", "BATCH", "STALL")
# How long ranks wait for others; less than the launcher waits for all of this.
PATIENCE_S = 20.0
BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def typical(work, seconds: float) -> float:
    """The median of the seconds of a call of ``work``, called for so long and three times.

    ``work`` may return the seconds that count.
    """
    work()  # pages are touched
    began = time.perf_counter()
    taken = []
    while (passed := time.perf_counter() - began) < seconds or (len(taken) < 3 and passed < MOST):
        before = time.perf_counter()
        counted = work()
        taken.append(counted or time.perf_counter() - before)
    return statistics.median(taken)


def leave(out: Path, name: str, content: dict) -> None:
    """Leave what was found by rename."""
    path = out / f"{socket.gethostname()}-{name}.json"
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps({"host": socket.gethostname(), **content}))
    partial.rename(path)


def measure(np, out: Path, seconds: float) -> None:
    """Compute and copy in this process."""
    matrices = [np.full((SIZE, SIZE), 0.5, np.float32) for _ in range(3)]
    arrays = [np.full(COPIED, 1, np.uint8) for _ in range(2)]  # untouched pages would be one

    def multiply() -> None:
        np.matmul(*matrices[:2], out=matrices[2])

    compute = 2 * SIZE**3 / typical(multiply, seconds)
    memory = 2 * COPIED / typical(lambda: np.copyto(*arrays), seconds)
    leave(out, str(os.getpid()), {"compute": compute, "memory": memory})


def measure_reading(out: Path, folder: Path, seconds: float) -> None:
    """Read a file on this host; other ranks of the host wait until one has done so."""
    host = socket.gethostname()
    try:
        (out / f"{host}.reading").touch(exist_ok=False)
    except FileExistsError:
        until = time.monotonic() + 2 * MOST
        while not (out / f"{host}-read.json").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return
    try:
        rates = {"read": READ / read_seconds(folder, seconds)}
    except OSError as error:
        rates = {"left_out": {"read": f"{folder}: {error.strerror}"}}
    leave(out, "read", rates)


def read_seconds(folder: Path, seconds: float) -> float:
    """The median time of reading a file of READ bytes that the kernel was asked to forget."""
    path = folder / f".canary-{socket.gethostname()}-{os.getpid()}"
    with path.open("w+b", buffering=0) as file:
        path.unlink()  # gone with this process, however it ends
        block = os.urandom(BLOCK)  # what packs files has nothing to pack
        for _ in range(READ // BLOCK):
            file.write(block)
        os.fsync(file)
        buffer = bytearray(BLOCK)

        def read() -> float:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            before = time.perf_counter()
            for begin in range(0, READ, BLOCK):
                os.preadv(file.fileno(), [buffer], begin)
            return time.perf_counter() - before

        return typical(read, seconds)


class NoAllreduceError(Exception):
    """Why there is none; empty where another rank says it."""


def measure_allreduce(out: Path, framework: str, seconds: float) -> None:
    """Sum up an array over all ranks; the rate as this rank sees it."""
    try:
        ranks, reduce, first_ones, leave_ranks = FRAMEWORKS[framework](out)
    except (ImportError, NoAllreduceError) as error:
        if why := str(error):
            leave(out, f"{os.getpid()}-allreduce", {"left_out": {"allreduce": why}})
        return
    reduce()
    began = time.perf_counter()
    reduce()
    # All ranks make as many, as the first one's clock says.
    often = first_ones(max(3, min(1000, round(seconds / (time.perf_counter() - began)))))
    taken = []
    for _ in range(often):
        began = time.perf_counter()
        reduce()
        taken.append(time.perf_counter() - began)
    rate = 2 * (ranks - 1) / ranks * REDUCED / statistics.median(taken)
    leave(out, f"{os.getpid()}-allreduce", {"allreduce": rate})
    leave_ranks()


def horovod_ranks(_out: Path):
    """Start Horovod: the number of ranks, an allreduce, a number that all have, and the end."""
    for name in list(os.environ):
        if name.startswith("HOROVOD_") and name.removeprefix("HOROVOD_").startswith(TUNING):
            del os.environ[name]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import horovod.tensorflow as hvd
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    hvd.init()
    if hvd.size() == 1:
        raise NoAllreduceError("Horovod does not know of other ranks")
    values = tf.ones([REDUCED // 4])

    def reduce() -> None:
        hvd.allreduce(values, op=hvd.Sum, name="canary")

    def first_ones(number: int) -> int:
        return int(hvd.broadcast(tf.constant(number), 0, name="often").numpy())

    return hvd.size(), reduce, first_ones, hvd.shutdown


def torch_ranks(out: Path):
    """Start torch.distributed: the same of it. Ranks see where they meet in ``out``."""
    sys.path.insert(0, str(BENCHMARKS))
    import torch
    import torch.distributed as dist

    from harness import torch_ranks
    from harness.program import ProgramError
    from harness.rendezvous import rendezvous

    try:
        if (size := rendezvous(by_file=True).size) == 1:
            raise NoAllreduceError("torch.distributed does not know of other ranks")
        torch_ranks.connect(size, 0, 0, out, PATIENCE_S)
    except ProgramError as error:
        raise NoAllreduceError(str(error)) from None
    device = torch_ranks.device()
    values = torch.zeros(REDUCED // 4, device=device)  # whatever they are summed up to

    def reduce() -> None:
        dist.all_reduce(values)
        if device.type == "cuda":
            torch.cuda.synchronize()

    def first_ones(number: int) -> int:
        shared = torch.tensor([number])
        dist.broadcast(shared, 0)
        return int(shared.item())

    def end() -> None:
        torch_ranks.disconnect()
        torch_ranks.end(0)

    return size, reduce, first_ones, end


FRAMEWORKS = {"tensorflow": horovod_ranks, "torch": torch_ranks}


def main() -> None:
    """Measure: products and copies in so many processes at once, the rest in one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--read", type=Path)
    parser.add_argument("--allreduce", choices=FRAMEWORKS, nargs="?", const="tensorflow")
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
    if args.read is not None:
        measure_reading(args.out, args.read, args.seconds)
    if args.allreduce:
        measure_allreduce(args.out, args.allreduce, args.seconds)


if __name__ == "__main__":
    main()
