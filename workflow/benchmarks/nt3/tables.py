"""The tables on a rank: found, loaded, checked, scaled, and turned into tensors and batches."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import program, ranks
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA
from nt3 import dataset, loading

Samples = tuple[tf.Tensor, tf.Tensor]  # x [samples, features, 1] and labels int32 [samples]


class Data:
    """Both tables on this rank: loaded (phase data_loading), then preprocessed."""

    def __init__(self, run: program.Run, phases: Phases, count: int) -> None:
        """Load, `count` rows to train on; ProgramError on all ranks when a table is broken."""
        params, rank = run.params, ranks.rank()
        self.reader = params["csv_reader" if params["data_format"] == "csv" else "data_format"]
        with phases("import"):
            self.package, problem = loading.import_package(self.reader)
            ranks.raise_together(problem)
        self.shared = params["partition"] == "samples" and params["ranks"] > 1
        tables = dataset.Tables.from_params(params)
        parts = {
            "train": loading.Part(rank * count if self.shared else 0, count, not self.shared),
            "test": loading.Part(0, params["test_samples"], True),
        }
        with phases("data_loading"):
            files = dict.fromkeys(parts, 1)
            ranks.raise_together(tables.missing(run.data, files) if rank == 0 else None)
            self.paths = {split: tables.path(run.data, split) for split in parts}
            self.rows: dict[str, np.ndarray] = {}
            began = time.perf_counter()
            for split, part in parts.items():
                self.rows[split], problem = loading.load(
                    self.reader, self.paths[split], params["features"], part
                )
                if problem:
                    break
            self.local_s = time.perf_counter() - began
            ranks.raise_together(problem)
            self.total_s = time.perf_counter() - began
        self.bytes = sum(Path(path).stat().st_size for path in self.paths.values())

    def preprocess(self) -> dict[str, Any]:
        """Check and scale; return tensors by split. The tables are let go."""
        faults = (find_fault(self.rows[split], self.paths[split]) for split in self.paths)
        fault = next(filter(None, faults), None)
        ranks.raise_together((EXIT_BAD_DATA, fault) if fault else None)

        def over_ranks(values: np.ndarray) -> np.ndarray:
            if not self.shared:  # all ranks hold the same rows
                return values
            return hvd.allreduce(tf.constant(values), op=hvd.Max, name="largest").numpy()

        scale(self.rows["train"], self.rows["test"], over_ranks)
        return {
            split: (tf.constant(table[:, 1:, None]), tf.constant(table[:, 0].astype(np.int32)))
            for split, table in ((split, self.rows.pop(split)) for split in self.paths)
        }


def find_fault(table: np.ndarray, path: str) -> str | None:
    """Return one line if a value of a table is not finite or a label not 0 or 1, else None."""
    if np.isfinite(table).all() and np.isin(table[:, 0], (0, 1)).all():
        return None
    return f"{path} is damaged (a value is not finite, or a label not 0 or 1): {loading.ADVICE}"


def scale(
    train: np.ndarray, test: np.ndarray, over_ranks: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Divide every feature by its largest absolute value over both tables, in place.

    What scikit-learn's MaxAbsScaler does; a feature that is 0 throughout stays so. `over_ranks`
    returns the largest values over all ranks, of which each may have other rows.
    """
    ends = [end for table in (train, test) for end in (table[:, 1:].max(0), table[:, 1:].min(0))]
    largest = over_ranks(np.abs(ends).max(0))
    largest[largest == 0] = 1
    for table in (train, test):
        table[:, 1:] /= largest


def batches(samples: Samples, size: int, order: np.ndarray) -> Iterator[Samples]:
    """Yield batches of samples in `order`, the last one smaller where `size` does not divide."""
    for first in range(0, len(order), size):
        chosen = tf.constant(order[first : first + size])
        yield tf.gather(samples[0], chosen), tf.gather(samples[1], chosen)
