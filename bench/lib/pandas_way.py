"""The usual way to keep and read such results: a text file per run, and a loop with pandas.

As in cosmoflow-benchmark (notebooks/DataBenchmark.ipynb at b93a54a): a row per epoch, the times of
all ranks printed into one cell, `[a b c]`, and parsed again by ``apply``; then means and standard
deviations of the first epoch and of the later ones. NumPy prints arrays of more than 1,000 values
with `...`, which lost ranks there; here they are printed whole and in full precision.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HISTORY = "data_benchmark_history.csv"
TIMES = ("local_times", "global_times")


def write_history(folder: Path, local: Any, total: Any) -> None:
    """Write times ``[epoch, rank]`` as text."""
    folder.mkdir(parents=True)
    rows = {"epoch": range(len(local)), "local_times": list(local), "global_times": list(total)}
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        pd.DataFrame(rows).to_csv(folder / HISTORY)


def read_histories(runs: Iterable[tuple[Path, int, int]]) -> pd.DataFrame:
    """A row per run, given as folder, ranks and samples of an epoch; columns as in the summary."""
    return pd.DataFrame.from_records([_row(*run) for run in runs])


def _parsed(cell: str) -> Any:
    return np.fromstring(cell.strip("[]"), dtype=float, sep=" ")


def _row(folder: Path, ranks: int, samples: int) -> dict[str, float]:
    history = pd.read_csv(folder / HISTORY)
    for name in TIMES:
        history[name] = history[name].apply(_parsed)
    row: dict[str, float] = {}
    for phase, epochs in (("init", history["epoch"] == 0), ("later", history["epoch"] > 0)):
        local, total = (np.vstack(list(history.loc[epochs, name])) for name in TIMES)
        numbers = {
            "total_time": total,
            "local_throughput": samples / (ranks * local),
            "total_throughput": samples / total,
        }
        for metric, values in numbers.items():
            row[f"{metric}_mean_{phase}"] = np.mean(values)
            row[f"{metric}_std_{phase}"] = np.std(values)
    return row
