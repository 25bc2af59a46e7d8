"""What a rank does: load both tables, preprocess, train, evaluate.

What the original times is timed apart: loading the tables, preprocessing, training with validation
after each epoch, evaluation.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from harness import no_exchange, ranks
from harness.frame import Arrays
from harness.native import Metric, metric
from harness.phases import Phases
from harness.program import Run
from harness.tf_trainer import Training
from harness.tf_training import Batches
from nt3 import model, tables


class Program(Training):
    """Training of NT3, with its tables loaded by the reader that is asked for."""

    names = ("loss", "accuracy")

    def __init__(self, run: Run, phases: Phases) -> None:
        """Find out how much this rank is to do."""
        super().__init__(run, phases)
        params = self.params
        self.samples, self.epochs = params["train_samples"], params["total_epochs"]
        if params["partition"] == "samples":
            self.samples //= params["ranks"]
        elif params["partition"] == "epochs":
            self.epochs //= params["ranks"]
        self.validates = params["validate"]
        self.base_rate = params["learning_rate"]
        self.rate_factor = no_exchange.together(params["ranks"])

    def set_up(self) -> None:
        """Load and preprocess the tables; build the network, the same on every rank."""
        self.data = tables.Data(self.run, self.phases, self.samples)
        with self.phases("preprocessing"):
            self.rows = self.data.preprocess()
            ranks.barrier()
        with self.phases("build"):
            shapes = ((self.params["features"], 1), ())
            self.build(model.build(self.params), model.measure, shapes, tf.int32)

    def batches(self, split: str, epoch: int) -> tuple[Batches, int]:
        """Return the batches of this rank's rows, in an order of its own, or of all test rows."""
        size = self.params["batch_size"]
        if split == "train":
            rng = np.random.default_rng([self.run.seed, ranks.rank(), epoch])
            order = rng.permutation(self.samples)
            return tables.batches(self.rows["train"], size, order), self.samples // size
        order = np.arange(self.params["test_samples"])
        return tables.batches(self.rows["test"], size, order), -(-len(order) // size)

    def measure(self) -> None:
        """Train, then test."""
        super().measure()
        with self.phases("evaluation"):
            tested = dict(zip(self.names, self.validate(0).values, strict=True))
            self.tested = ranks.mean_over_ranks(tested)

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave, and how long each rank took to load the tables."""
        loaded = ranks.gather(np.array([self.data.local_s]))
        return super().gather() | {"data_loading_times": loaded}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return those of every training, of the test, and of loading."""
        data = self.data
        return super().metrics(arrays) | {
            "test_accuracy": metric(self.tested["accuracy"], "1", "higher"),
            "data_loading_time": metric(data.total_s, "s"),
            "data_loading_rate": metric(data.bytes / data.total_s, "bytes/s", "higher"),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what has read the tables too."""
        data = self.data
        loaded = {"reader": data.reader, "package": data.package, "file_bytes": data.bytes}
        return super().notes(about_ranks) | {"loading": loaded}
