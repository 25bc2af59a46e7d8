"""What a rank does: place itself, build the network, take steps.

Each step ends when its loss is known to the program, and is timed on every rank. All ranks meet
before the first timed step and after the last one.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import cluster, images, metrics, updates
from cnn_training.trainer import Taken
from harness import horovod_settings, input_errors, no_exchange, ranks, spans, tf_spans
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError

Problem = tuple[int, str]
USUAL = {"data_format": "NHWC", "precision": "float32", "xla": False}  # which all devices have
BROKEN = "training diverged: not all weights are finite"  # as a loss can be all the same


class CNNTraining(Benchmark):
    """Steps of training, shared among devices in one of several ways."""

    problem: Problem | None = None  # what went wrong on this rank, until all ranks meet

    def start(self) -> None:
        """Start the ranks, place this one, build the network and all that a step needs.

        Without exchange, of whatever mode, every device trains by itself.
        """
        if no_exchange.left_out():
            alone = {"variable_update": "independent", "all_reduce": "auto"}
            self.params = {**self.params, **alone}
        self.place = cluster.join(self.params)
        self.trainer = updates.make(self.params, self.place, self.run.data)

    def warm_up(self) -> None:
        """Take the first steps, in which TensorFlow traces and compiles."""
        with self.phases("warmup"):
            self.warmup = self.take("warm-up", self.params["warmup_batches"])
            ranks.raise_together(self.problem)

    def measure(self) -> None:
        """Take the timed steps."""
        with self.phases("timed"):
            ranks.barrier()
            began = time.perf_counter()
            self.timed = self.take("timed", self.params["batches"])
            ranks.raise_together(self.problem)
            self.wall = time.perf_counter() - began

    def take(self, kind: str, steps: int) -> Taken:
        """Take steps of a kind, and keep that a loss is not finite for when all ranks meet.

        Raises ProgramError at once for bad data and for what TensorFlow has no code for.
        """
        try:
            taken = self.trainer.run(steps)
        except tf.errors.OpError as error:
            if problem := self.bad_data(error) or self.lack_of_support(error):
                raise ProgramError(*problem) from None
            raise
        losses = taken[1]
        if len(wrong := np.argwhere(~np.isfinite(losses))):
            first, params = wrong[0][0], self.params
            said = f"the loss is {losses[first].min()} in {kind} step {first + 1}"
            used = f"learning_rate {params['learning_rate']}, precision {params['precision']}"
            self.problem = EXIT_BAD_DATA, f"training diverged: {said} ({used})"
        return taken

    def bad_data(self, error: Any) -> Problem | None:
        """Return exit code and message if reading images failed because of them, else None."""
        gone_or_odd = (tf.errors.NotFoundError, tf.errors.InvalidArgumentError)
        read = isinstance(error, gone_or_odd) and "IteratorGetNext" in error.message
        if self.params["input"] == "synthetic" or not (
            read or isinstance(error, tf.errors.DataLossError)
        ):
            return None
        code, said = input_errors.describe(error, self.files())
        return code, f"input: {said}"

    def lack_of_support(self, error: Any) -> Problem | None:
        """Return exit code and message if TensorFlow has no code for what was asked, else None:
        for a layout, a precision or XLA that not every device has."""
        params = self.params
        asked = [f"{name} {params[name]}" for name in USUAL if params[name] != USUAL[name]]
        if asked and (line := input_errors.lacking(error)):
            return EXIT_UNSUPPORTED, f"{', '.join(asked)}: {line}"
        return None

    def files(self) -> list[str]:
        """Return the files of the stand-in, if images are read from it."""
        reads = self.params["input"] == "tfrecords"
        return images.stand_in_files(self.params, self.run.data) if reads else []

    def check_weights(self) -> None:
        """Raise ProgramError on all ranks for a loss or weight of any rank that is not finite."""
        for variable in (variable for copy in self.trainer.copies for variable in copy):
            with tf.device(variable.device):
                if not tf.reduce_all(tf.math.is_finite(variable)):
                    self.problem = self.problem or (EXIT_BAD_DATA, BROKEN)
        ranks.raise_together(self.problem)

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times, losses and spans of steps (`spans.COLUMNS`), ``[step, rank]``."""
        self.check_weights()
        arrays = {
            "warmup_step_times": self.everyone(self.warmup[0]),
            "step_times": self.everyone(self.timed[0]),
            "loss": self.everyone(self.timed[1]),
        }
        if tf_spans.method() != spans.NONE:
            seconds = self.everyone(self.timed[2])
            for number, name in enumerate(spans.COLUMNS):
                arrays[name] = None if seconds is None else seconds[:, number]
        return arrays

    def everyone(self, values: np.ndarray) -> np.ndarray | None:
        """Return ``[step, rank]`` on rank 0, from what it or every rank has measured; else None."""
        if self.trainer.drives_all:
            return values if ranks.rank() == 0 else None
        return ranks.gather(values)

    def threads(self) -> tuple[int, int]:
        """Return this rank's threads, of which servers need a least number."""
        return self.place.threads

    @property
    def images_per_step(self) -> int:
        """Images of a rank in a step."""
        return self.params["devices_per_rank"] * self.params["batch_size"]

    def work(self) -> Work:
        """Return the images of all timed steps, which are an epoch here, and the bytes read."""
        samples = self.params["ranks"] * self.images_per_step * self.params["batches"]
        work: Work = {"samples_per_epoch": samples, "samples": samples, "phases": ["timed"]}
        if files := self.files():
            size = sum(Path(file).stat().st_size for file in files)
            work["bytes_per_epoch"] = round(samples * size / self.params["data_images"])
        return work

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the speeds by several formulas, and the size of the network."""
        times, warmup, loss = (arrays[n] for n in ("step_times", "warmup_step_times", "loss"))
        measured = metrics.metrics(times, warmup, loss, self.wall, self.images_per_step)
        weights = sum(each.shape.num_elements() for each in self.trainer.model.trainable_variables)
        measured["model_parameters"] = metric(weights, "parameters", scope="rank")
        if self.place.kind == "GPU" and self.params["input"] != "synthetic":
            copied = np.prod(images.shape_of(self.params)) * np.dtype(np.float32).itemsize
            measured["copied_bytes_per_sample"] = metric(float(copied), "bytes", scope="rank")
        return measured

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return how devices share, images of a step, and what Horovod reduces in it."""
        trainer, params = self.trainer, self.params
        notes = {
            "mode": {"synchronous": trainer.synchronous, "strategy": trainer.strategy},
            "spans": self.about_spans(),
            "batch": {"global": params["ranks"] * self.images_per_step},
        }
        if trainer.strategy == "horovod":
            variables, compression = trainer.model.trainable_variables, params["compression"]
            notes["exchange"] = horovod_settings.exchanged(variables, compression, params["ranks"])
        return notes

    def about_spans(self) -> dict[str, Any]:
        """Return what is noted of the spans of steps."""
        return spans.about(tf_spans.method(), self.params["batches"])
