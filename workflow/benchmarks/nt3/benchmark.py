"""What a rank does: load both tables, preprocess, train, evaluate.

What the original times is timed apart: loading the tables, preprocessing, training with validation
after each epoch, evaluation.
"""

import socket
from typing import Any

import numpy as np

from harness import ranks, tf_training
from harness.frame import Arrays, Benchmark
from harness.hardware import cpu_model
from harness.native import Metric, Work, metric
from harness.phases import Phases
from harness.program import EXIT_UNSUPPORTED, Run
from nt3 import loading, memory
from nt3.tables import Data
from nt3.trainer import Trainer


class Program(Benchmark):
    """Training of NT3, with its tables loaded by the reader that is asked for."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Draw the seed of this run."""
        super().__init__(run, phases)
        self.seed = run.seed

    def start(self) -> None:
        """Start the ranks, seed this one, and look at the memory of its host."""
        tf_training.start(self.params)
        tf_training.set_seeds(self.seed, ranks.rank())
        self.memory = look_at_memory(self.params["memory_mode"])

    def set_up(self) -> None:
        """Load and preprocess the tables; build the network, the same on every rank."""
        self.data = Data(self.run, self.phases)
        with self.phases("preprocessing"):
            samples = self.data.preprocess()
            ranks.barrier()
        with self.phases("build"):
            self.trainer = Trainer(self.params, samples, self.seed)
        with self.phases("broadcast"):
            tf_training.broadcast(self.trainer.model, self.trainer.optimizer)
            ranks.barrier()

    def measure(self) -> None:
        """Train, then test."""
        self.history = self.trainer.run(self.phases)
        with self.phases("evaluation"):
            self.tested = self.trainer.tested()

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave, and how long each rank took to load the tables."""
        arrays = self.history.arrays()
        arrays["data_loading_times"] = ranks.gather(np.array([self.data.local_s]))
        return arrays

    @property
    def samples_per_epoch(self) -> int:
        """Training samples of all ranks."""
        return self.params["ranks"] * loading.rows_of_rank(self.params)

    def work(self) -> Work:
        """Return the samples of training; the tables are read once, not in each epoch."""
        return {
            "samples_per_epoch": self.samples_per_epoch,
            "samples": self.samples_per_epoch * len(self.history.total),
            "phases": ["training"],
        }

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return those of every training, of the test, and of loading."""
        data, model, target_at = self.data, self.trainer.model, self.history.target_at
        return {
            **tf_training.training_metrics(arrays, self.samples_per_epoch, target_at, model),
            "test_accuracy": metric(self.tested["accuracy"], "1", "higher"),
            "data_loading_time": metric(data.total_s, "s"),
            "data_loading_rate": metric(data.bytes / data.total_s, "bytes/s", "higher"),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return each host's memory mode and what has read the tables too."""
        data = self.data
        loaded = {"reader": data.reader, "package": data.package, "file_bytes": data.bytes}
        notes = tf_training.training_notes(self.params, self.trainer, self.history, self.seed)
        return {"memory_mode": self.memory, "loading": loaded} | notes


def look_at_memory(asked: str) -> dict[str, str | None]:
    """Return the mode of every host's memory by its name; ProgramError on all if one is in another.

    A host is asked by its first rank.
    """
    host = socket.gethostname()
    there = memory.mode(cpu_model()) if ranks.first_on_host() else None
    problem = memory.mismatch(asked, there, host) if ranks.first_on_host() else None
    ranks.raise_together((EXIT_UNSUPPORTED, problem) if problem else None)
    known = ranks.gather_json([host, ranks.first_on_host(), there])
    return {name: mode for name, first, mode in known if first}
