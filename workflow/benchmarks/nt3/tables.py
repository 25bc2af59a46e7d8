"""The tables on a rank: found, loaded, scaled, and turned into tensors."""

import time
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import program, ranks
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA
from nt3 import dataset, loading, preprocessing


class Data:
    """Both tables on this rank: loaded (phase data_loading), then preprocessed."""

    def __init__(self, run: program.Run, phases: Phases) -> None:
        """Load; ProgramError on all ranks when a table of one is missing or broken."""
        params, rank = run.params, ranks.rank()
        self.reader = params["csv_reader" if params["data_format"] == "csv" else "data_format"]
        with phases("import"):
            self.package, problem = loading.import_package(self.reader)
            ranks.raise_together(problem)
        self.shared = params["partition"] == "samples"
        tables = dataset.Tables.from_params(params)
        share = (rank, params["ranks"]) if self.shared else (0, 1)
        parts = {
            "train": loading.part_of(params["train_samples"], *share),
            "test": loading.part_of(params["test_samples"], 0, 1),
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
        faults = (
            preprocessing.find_fault(self.rows[split], self.paths[split]) for split in self.paths
        )
        fault = next(filter(None, faults), None)
        ranks.raise_together((EXIT_BAD_DATA, fault) if fault else None)

        def over_ranks(values: np.ndarray) -> np.ndarray:
            if not self.shared:  # all ranks hold the same rows
                return values
            return hvd.allreduce(tf.constant(values), op=hvd.Max, name="largest").numpy()

        preprocessing.scale(self.rows["train"], self.rows["test"], over_ranks)
        return {split: preprocessing.to_tensors(self.rows.pop(split)) for split in self.paths}
