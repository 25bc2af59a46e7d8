"""Do the probes reach what the machine gives? Against hand-written loops and a compiled STREAM.

compute_peak's call takes turns with hand-written TensorFlow loops over the same matrices, in one
process; the ratio is that of the best of all rounds, as a ceiling is. The fastest loop then meets
it again: being the fastest of several is partly luck. memory_bandwidth's kernels and a STREAM that
gcc compiles (-O3 -fopenmp) take turns too, on arrays of the same size and as many threads; the
ratio is the median over pairs of turns, of each of which the best round counts.

    python -m bench.probes [--rounds N]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run, take_turns

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import numpy as np
import tensorflow as tf

from compute_peak.benchmark import flop, make_call
from harness.probe import works_of
from memory_bandwidth import kernels

BOUND = 0.9
SIZE = 1024


def loops(size: int) -> dict[str, Callable[[], object]]:
    """Return hand-written matrix products of the same size and type."""
    a, b = (tf.random.normal([size, size]) for _ in range(2))
    in_graph, compiled = tf.function(tf.linalg.matmul), tf.function(tf.matmul, jit_compile=True)

    @tf.function
    def chain(x, y):
        for _ in tf.range(4):
            x = tf.linalg.matmul(x, y) * 1e-3
        return x

    return {
        "eager": lambda: tf.linalg.matmul(a, b),
        "graph": lambda: in_graph(a, b),
        "XLA": lambda: compiled(a, b),
        "loop in graph": lambda: chain(a, b),
    }


def best(seconds: dict[str, list[float]], products: dict[str, int]) -> dict[str, float]:
    """Return the shortest time of a product by loop; `products`: of a call, 1 where not given."""
    return {name: min(times) / products.get(name, 1) for name, times in seconds.items()}


def compare_compute(rounds: int) -> dict:
    """Return ceilings by loop in FLOP/s, and ours over the best hand-written one's."""
    params = {"operation": "matmul", "dtype": "float32", "data_format": "NHWC"}
    ours = make_call(params, SIZE)
    jobs = {"compute_peak": ours} | loops(SIZE)
    products = {"compute_peak": works_of(ours), "loop in graph": 4}
    first = best(take_turns(jobs, rounds), products)
    rival = min((name for name in jobs if name != "compute_peak"), key=first.get)
    pair = best(
        take_turns({name: jobs[name] for name in ("compute_peak", rival)}, 2 * rounds), products
    )
    return {
        "flops": {name: flop(params, SIZE) / seconds for name, seconds in first.items()},
        "best_hand_written": rival,
        "over_best": pair[rival] / pair["compute_peak"],
    }


def compile_stream(folder: Path) -> Path | None:
    """Compile STREAM; None where there is no gcc."""
    if shutil.which("gcc") is None:
        return None
    program = folder / "stream"
    source = str(HERE / "lib" / "stream.c")
    subprocess.run(["gcc", "-O3", "-fopenmp", source, "-o", str(program)], check=True)
    return program


def time_stream(program: Path, values: int, threads: int, rounds: int) -> np.ndarray:
    """Return the shortest seconds of each kernel; a round of warm-up is left out."""
    done = subprocess.run(
        [str(program), str(values), str(rounds + 1)],
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    times = np.array([row.split() for row in done.stdout.splitlines()], float)
    return times[1:].min(axis=0)


def time_kernels(made: dict[str, kernels.Kernel], rounds: int) -> np.ndarray:
    """Return the shortest seconds of each kernel of a library; a round of warm-up is left out."""
    times = np.empty((rounds + 1, len(made)))
    for row in times:
        for place, call in enumerate(made.values()):
            began = time.perf_counter()
            call()
            row[place] = time.perf_counter() - began
    return times[1:].min(axis=0)


def by_kernel(values: np.ndarray) -> dict[str, float]:
    """Return a number of each kernel by its name."""
    return dict(zip(kernels.ARRAYS, values.tolist(), strict=True))


def compare_memory(program: Path, pairs: int, rounds: int) -> dict:
    """Return by kernel the rates in bytes/s of both, and ours over STREAM's; pairs take turns."""
    threads = len(os.sched_getaffinity(0))
    values = kernels.array_bytes(None) // 8
    amounts = np.array([arrays * 8.0 * values for arrays in kernels.ARRAYS.values()])
    ours, theirs = [], []
    for _ in range(pairs):
        theirs.append(amounts / time_stream(program, values, threads, rounds))
        rates = []
        for make in (
            lambda: kernels.tensorflow_kernels(values, lambda result: result),
            lambda: kernels.numpy_kernels(values, threads),
        ):
            made = make()
            rates.append(amounts / time_kernels(made, rounds))
            del made
        ours.append(np.max(rates, axis=0))
    mine, stream = np.array(ours), np.array(theirs)
    return {
        "array_bytes": 8 * values,
        "threads": threads,
        "bandwidth": by_kernel(np.median(mine, axis=0)),
        "stream": by_kernel(np.median(stream, axis=0)),
        "over_stream": by_kernel(np.median(mine / stream, axis=0)),
        "best_over_stream": float(np.median(mine.max(axis=1) / stream.max(axis=1))),
    }


def measure(rounds: int = 15) -> Iterator[dict[str, Any]]:
    """Of so many rounds."""
    compute = compare_compute(rounds)
    name = f"compute_peak over the best hand-written loop ({compute['best_hand_written']})"
    yield figure(name, compute["over_best"], "x", BOUND, "higher")
    with tempfile.TemporaryDirectory(prefix="bench-probes-") as folder:
        program = compile_stream(Path(folder))
        if program is None:
            print("no gcc: STREAM is not compared", file=sys.stderr)
            return
        memory = compare_memory(program, max(3, rounds // 2), 6)
    best = memory["best_over_stream"]
    yield figure("memory_bandwidth over STREAM", best, "x", BOUND, "higher")
    for kernel, share in memory["over_stream"].items():
        name = f"{kernel} of memory_bandwidth over STREAM's"
        yield figure(name, share, "x", BOUND, "higher")


if __name__ == "__main__":
    run(measure)
