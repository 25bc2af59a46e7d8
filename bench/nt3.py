"""Is loading NT3's tables fast, by every reader, and what does measuring a training step cost?

(a) Each reader on a table of the original's width with fewer rows, from the page cache: rows/s, and
MB/s of the file. (b) An epoch of the program against the bare loop, which calls the same graph on
one batch without clocks, order or gathering. Each comparison takes turns, in a new
order each round; a ratio is the median over rounds of theirs / ours in seconds, above 1 where ours
is faster.

    python -m bench.nt3 [--rounds N] [--rows N]
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, ratio, run, take_turns

BENCHMARKS = Path(__file__).resolve().parents[1] / "workflow" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))  # before this folder, whose nt3.py this is

from harness import import_without  # before TensorFlow: it silences its start

import_without("pandas", "scipy", "PIL")

import numpy as np
import yaml

from harness import ranks
from nt3 import dataset, formats, loading, preprocessing
from nt3.trainer import Trainer

WIDTH = 60_483
SMALL = {"features": 4000, "train_samples": 560, "test_samples": 140, "filters": [16, 16]}
Timed = dict[str, list[float]]  # seconds by what was timed, one per round


def compare_readers(folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    """Return rows/s and MB/s of each reader, and the time of the original's over its own."""
    for name in loading.READERS:
        if problem := loading.import_package(name)[1]:
            raise SystemExit(problem[1])
    paths = {}
    for data_format in formats.FORMATS:
        tables = dataset.Tables(WIDTH, rows, 1, data_format)
        paths[data_format] = tables.path(folder, "train")
        Path(paths[data_format]).parent.mkdir(exist_ok=True)
        tables.write(paths[data_format], "train", 0)
    part = loading.Part(0, rows, True)

    def job(name: str) -> Callable[[], None]:
        path = paths.get(name, paths["csv"])

        def read() -> None:
            _, problem = loading.load(name, path, WIDTH, part)
            if problem:
                raise SystemExit(problem[1])

        return read

    seconds = take_turns({name: job(name) for name in loading.READERS}, rounds)
    readers = {}
    for name, each in seconds.items():
        size = Path(paths.get(name, paths["csv"])).stat().st_size
        median = statistics.median(each)
        readers[name] = {
            "rows_per_second": rows / median,
            "mb_per_second": size / median / 1e6,
            "pandas_over_this": ratio(seconds["pandas"], each),
        }
    return readers


def compare_epochs(rounds: int) -> dict[str, Any]:
    """Return samples/s of an epoch of the program, and the time of others over it."""
    declared = yaml.safe_load((BENCHMARKS / "nt3" / "benchmark.yaml").read_text())["parameters"]
    params = {name: spec["default"] for name, spec in declared.items()} | SMALL
    rng = np.random.default_rng(1)
    samples = {}
    for split in dataset.SPLITS:
        table = rng.random((params[f"{split}_samples"], 1 + params["features"]), np.float32)
        table[:, 0] = np.arange(len(table)) % 2
        samples[split] = preprocessing.to_tensors(table)
    trainer = Trainer(params, samples, seed=1)
    x, y = next(preprocessing.batches(samples["train"], trainer.batch, np.arange(trainer.batch)))

    def bare() -> None:
        for _ in range(trainer.steps):
            last, _ = trainer.step(x, y)
        last.numpy()

    jobs = {"own": lambda: trainer.train(0), "bare": bare}
    seconds = take_turns(jobs, rounds)
    return {
        "samples_per_second": params["train_samples"] / statistics.median(seconds["own"]),
        "own_over_bare": ratio(seconds["own"], seconds["bare"]),
    }


def measure(rounds: int = 5, rows: int = 64) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds, on a table of so many rows."""
    ranks.use("tensorflow")
    ranks.start(1)
    with tempfile.TemporaryDirectory(prefix="bench-nt3-") as name:
        readers = compare_readers(Path(name), rows, rounds)
        epochs = compare_epochs(4 * rounds)
    for name, each in readers.items():
        yield figure(f"{name}: a table of {WIDTH:,} features", each["rows_per_second"], "rows/s")
        yield figure(f"pandas / {name}", each["pandas_over_this"], "x")
    yield figure("an epoch / the bare loop", epochs["own_over_bare"], "x")
    ranks.stop()


if __name__ == "__main__":
    run(measure)
