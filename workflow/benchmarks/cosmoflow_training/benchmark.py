"""What a rank does: build the network, train it on the rank's own samples, validate.

Per epoch, on every rank: barrier, training, barrier, validation, barrier (`harness.tf_training`).
Pipelines are opened and destroyed inside these times.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data import files
from cosmoflow_training import inputs
from cosmoflow_training.trainer import Trainer
from harness import ranks, tf_training
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work
from harness.phases import Phases
from harness.program import EXIT_PARAMETERS, ProgramError, Run


class Program(Benchmark):
    """Training of CosmoFlow's network."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Draw the seed of this run."""
        super().__init__(run, phases)
        self.seed = run.seed
        self.reads = self.params["input"] != "dummy"
        edges, factors = self.params["decay_epochs"], self.params["decay_factors"]
        if edges != sorted(set(edges)) or len(edges) != len(factors):
            said = f"decay_epochs {edges} must ascend, with a factor for each, not {factors}"
            raise ProgramError(EXIT_PARAMETERS, said)

    def start(self) -> None:
        """Start the ranks and set seeds, precision and determinism."""
        configure(self.params, self.seed)

    def set_up(self) -> None:
        """See that all files are there; build the network, the same on every rank."""
        run, params, rank = self.run, self.params, ranks.rank()
        with self.phases("data_staging"):
            problem = files.find_missing(run) if self.reads and rank == 0 else None
            ranks.raise_together(problem)
        with self.phases("build"):
            self.trainer = Trainer(params, inputs.make(params, run.data, rank, self.seed))
        with self.phases("broadcast"):
            tf_training.broadcast(self.trainer.model, self.trainer.optimizer)

    def measure(self) -> None:
        """Train until the target is met or all epochs are done."""
        self.history = self.trainer.run(self.phases)

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave, and the size of all files that were read."""
        self.size = None
        if self.reads:  # all files are of the right size
            names = inputs.names_of_rank(self.params, self.run.data, ranks.rank(), 0, self.seed)
            sizes = {split: files.bytes_of(self.params, each) for split, each in names.items()}
            self.size = ranks.gather(np.array(float(sizes["train"])))
        else:  # its errors mean nothing
            self.history.values.clear()
        return self.history.arrays()

    def about_rank(self) -> str:
        """Return the kind of device that this rank trains on."""
        devices = tf.config.get_visible_devices("GPU") or tf.config.get_visible_devices("CPU")
        return devices[0].device_type

    @property
    def samples_per_epoch(self) -> int:
        """Training samples of all ranks."""
        return self.params["ranks"] * self.params["samples_per_rank"]

    def work(self) -> Work:
        """Return the samples of training, and the bytes of their files."""
        work: Work = {
            "samples_per_epoch": self.samples_per_epoch,
            "samples": self.samples_per_epoch * len(self.history.total),
            "phases": ["training"],
        }
        if self.size is not None:
            work["bytes_per_epoch"] = int(self.size.sum())
        return work

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return those of every training."""
        model, target_at = self.trainer.model, self.history.target_at
        return tf_training.training_metrics(arrays, self.samples_per_epoch, target_at, model)

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return the devices too."""
        notes = tf_training.training_notes(self.params, self.trainer, self.history, self.seed)
        return {"devices": about_ranks} | notes


def configure(params: dict[str, Any], seed: int) -> None:
    """Start Horovod and TensorFlow; set seeds, precision and determinism."""
    tf_training.start(params)
    tf_training.set_seeds(seed, ranks.rank())
    tf.keras.mixed_precision.set_global_policy(params["precision"])
    if params["deterministic"] and tf.config.get_visible_devices("GPU"):
        tf.config.experimental.enable_op_determinism()
