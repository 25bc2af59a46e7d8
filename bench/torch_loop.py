"""Is torch_training's step as fast as a plain loop of PyTorch, and as cnn_training's?

The benchmark's loop, with its time stamps and the loss read in each step, against a loop written
straight from PyTorch's tutorial, which reads none, around the same network. For resnet20 also
against the network as users of PyTorch write it, padded on all sides (TensorFlow's padding, on two,
has to be copied), and against cnn_training's step, the same network in TensorFlow. One thread each,
float32, SGD with decay, synthetic batches. glibc keeps freed memory: else it gives some back in
each step, so much of it by chance that page faults decide which of two equal loops is faster. Loops
take turns, in a new order each round; a ratio is the median over rounds of theirs / ours in seconds
a step, above 1 where ours is faster. Needs `make torch`.

    python -m bench.torch_loop [--rounds N]
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from bench.lib.pairs import figure, ratio, run, take_turns

ROOT = Path(__file__).resolve().parents[1]
TORCH = ROOT / ".torch" / "bin" / "python"
BOUND = 0.98
TINY_GPT = {"layers": 4, "width": 128, "heads": 4, "sequence": 128, "vocabulary": 1000}
# Name, parameters, and steps of a turn.
CASES: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("mlp, batch 64", {"model": "mlp", "layers": 4, "width": 256, "batch_size": 64}, 40),
    ("transformer, batch 4", {"model": "transformer", "batch_size": 4, **TINY_GPT}, 4),
    ("resnet20, batch 32", {"model": "resnet20", "batch_size": 32}, 3),
)
# More of them wait for each other wherever something else runs on the machine.
SINGLE_THREAD = {
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
WORDS = {
    "plain": "plain loop",
    "padded": "plain loop, PyTorch's padding",
    "keras": "cnn_training (tf.keras)",
}


class Loops:
    """A process that takes steps when it is asked to."""

    def __init__(self, python: Path, script: str, params: dict[str, Any], ended: ExitStack) -> None:
        """Start it, and wait until it is ready; `ended` ends it."""
        words = [str(python), str(ROOT / "bench" / "lib" / script), json.dumps(params)]
        env = os.environ | SINGLE_THREAD
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=env)
        ended.callback(self.process.wait)
        ended.callback(self.process.kill)
        self.answer()

    def answer(self) -> None:
        """Wait for the line that it answers with."""
        if self.process.stdout is None or self.process.stdout.readline() != "\n":
            raise SystemExit(f"bench: {self.process.args!r} ended")

    def job(self, name: str, steps: int) -> Callable[[], None]:
        """Return what has it take steps of one of its loops."""

        def take() -> None:
            if self.process.stdin is not None:
                self.process.stdin.write(f"{name} {steps}\n")
                self.process.stdin.flush()
            self.answer()

        return take


def defaults() -> dict[str, Any]:
    """The parameters of torch_training."""
    declared = ROOT / "workflow" / "benchmarks" / "torch_training" / "benchmark.yaml"
    specs = yaml.safe_load(declared.read_text())["parameters"]
    return {name: spec["default"] for name, spec in specs.items()}


def torch_python(script: str) -> Path:
    """The Python that has PyTorch; the script ends where there is none."""
    if not TORCH.exists():
        raise SystemExit(f"{script}: PyTorch is missing: make torch")
    return TORCH


def compare(params: dict[str, Any], steps: int, rounds: int) -> dict[str, list[float]]:
    """Seconds a step of each loop, by round."""
    known = defaults()
    with ExitStack() as ended:
        torch = Loops(torch_python("bench.torch_loop"), "torch_loops.py", known | params, ended)
        jobs = {name: torch.job(name, steps) for name in ("own", "plain")}
        if params["model"] == "resnet20":
            jobs["padded"] = torch.job("padded", steps)
            same = {"learning_rate": known["learning_rate"], "data_set": "cifar10", **params}
            keras = Loops(Path(sys.executable), "keras_loop.py", same, ended)
            jobs["keras"] = keras.job("keras", steps)
        return take_turns(jobs, rounds, steps)


def measure(rounds: int = 40) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds."""
    for name, params, steps in CASES:
        seconds = compare(params, steps, rounds)
        own = statistics.median(seconds["own"])
        yield figure(f"{name}: ours", params["batch_size"] / own, "1/s")
        for loop, words in WORDS.items():
            if loop in seconds:
                bound = BOUND if loop == "plain" else None
                value = ratio(seconds[loop], seconds["own"])
                yield figure(f"{name}: {words} / ours", value, "x", bound, "higher")


if __name__ == "__main__":
    run(measure)
