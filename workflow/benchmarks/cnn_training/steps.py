"""What a rank does: place itself, build the network, take steps.

Each step ends when its loss is known to the program, and is timed on every rank. All ranks meet
before the first timed step and after the last one.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import cluster, metrics, models, updates
from cnn_training.trainer import Taken
from harness import horovod_settings, input_errors, no_exchange, ranks, spans, tf_spans
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError

Problem = tuple[int, str]


class CNNTraining(Benchmark):
    """Steps of training, shared among devices in one of several ways."""

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
            steps = self.params["warmup_batches"]
            self.warmup, problem = take_steps(
                self.trainer, "warm-up", steps, self.params, self.run.data
            )
            ranks.raise_together(problem)

    def measure(self) -> None:
        """Take the timed steps."""
        trainer, params = self.trainer, self.params
        with self.phases("timed"):
            ranks.barrier()
            began = time.perf_counter()
            self.timed, problem = take_steps(
                trainer, "timed", params["batches"], params, self.run.data
            )
            ranks.raise_together(problem)
            self.wall = time.perf_counter() - began

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather times and losses of steps; ProgramError on all ranks for bad weights."""
        ranks.raise_together(bad_weights(self.trainer))
        return {
            "warmup_step_times": self.everyone(self.warmup[0]),
            "step_times": self.everyone(self.timed[0]),
            "loss": self.everyone(self.timed[1]),
            **self.spans(),
        }

    def spans(self) -> dict[str, np.ndarray | None]:
        """Return where the seconds of the timed steps went (`spans.COLUMNS`), ``[step, rank]``."""
        if tf_spans.method() == spans.NONE:
            return {}
        seconds = self.everyone(self.timed[2])
        return {
            name: None if seconds is None else seconds[:, number]
            for number, name in enumerate(spans.COLUMNS)
        }

    def everyone(self, values: np.ndarray) -> np.ndarray | None:
        """Return ``[step, rank]`` on rank 0, from what it or every rank has measured; else None."""
        if self.trainer.drives_all:
            return values if ranks.rank() == 0 else None
        return ranks.gather(values)

    def threads(self) -> tuple[int, int]:
        """Return this rank's threads, of which servers need a least number."""
        return self.place.threads

    def about_rank(self) -> list[str]:
        """Return the devices of this rank."""
        return self.place.names()

    @property
    def images_per_step(self) -> int:
        """Images of a rank in a step."""
        return self.params["devices_per_rank"] * self.params["batch_size"]

    def work(self) -> Work:
        """Return the images of all timed steps: an epoch here."""
        images = self.params["ranks"] * self.images_per_step * self.params["batches"]
        work: Work = {"samples_per_epoch": images, "samples": images, "phases": ["timed"]}
        if size := bytes_of_an_image(self.run.data, self.params):
            work["bytes_per_epoch"] = round(images * size)
        return work

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the speeds by several formulas, and the size of the network."""
        times, warmup, loss = (arrays[n] for n in ("step_times", "warmup_step_times", "loss"))
        measured = metrics.metrics(times, warmup, loss, self.wall, self.images_per_step)
        weights = count(self.trainer.model.trainable_variables)
        measured |= {"model_parameters": metric(weights, "parameters", scope="rank")}
        if self.place.kind == "GPU" and self.params["input"] != "synthetic":
            shape = models.image_shape(self.params["model"], self.params["data_set"])
            copied = np.prod(shape) * np.dtype(np.float32).itemsize
            measured["copied_bytes_per_sample"] = metric(float(copied), "bytes", scope="rank")
        return measured

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return how devices share, what they are, and the sizes of batches and network."""
        trainer, params = self.trainer, self.params
        return {
            "mode": {
                "synchronous": trainer.synchronous,
                "strategy": trainer.strategy,
                "all_reduce": trainer.all_reduce,
                "communication": trainer.communication,
                "step_times": trainer.step_times,
            },
            "devices": about_ranks,
            "spans": self.about_spans(),
            "batch": {
                "global": params["ranks"] * self.images_per_step,
                "per_device": params["batch_size"],
            },
            "weights": {
                "trainable": count(trainer.model.trainable_variables),
                "all": count(trainer.model.variables),
            },
            "exchange": self.exchange(),
        }

    def about_spans(self) -> dict[str, Any]:
        """Return what is noted of the spans of steps."""
        return spans.about(tf_spans.method(), self.params["batches"])

    def exchange(self) -> dict[str, Any] | None:
        """Return what Horovod reduces in a step; None in the modes that exchange without it."""
        if self.trainer.communication != "horovod":
            return None
        variables, params = self.trainer.model.trainable_variables, self.params
        return horovod_settings.exchanged(variables, params["compression"], params["ranks"])


def take_steps(
    trainer: Any, kind: str, steps: int, params: dict[str, Any], folder: Path | None
) -> tuple[Taken, Problem | None]:
    """Take steps; return what they gave and, with its exit code, what went wrong, else None.

    `kind` of steps is for messages, `folder` that of the data set. Raises ProgramError at once when
    this rank's data are bad, and as it is whatever is not known to be a lack of support or a loss
    that is not finite.
    """
    if trainer.run is None or not steps:
        ranks_too = (params["ranks"],) if trainer.drives_all else ()
        nothing = np.empty((0, *ranks_too))
        return (nothing, nothing, np.empty((0, len(spans.COLUMNS), *ranks_too))), None
    try:
        taken = trainer.run(steps)
    except tf.errors.OpError as error:
        if params["input"] != "synthetic" and (problem := bad_data(error, folder)):
            raise ProgramError(*problem) from None
        if (problem := lack_of_support(params, error)) is None:
            raise
        return (np.empty(0), np.empty(0), np.empty((0, len(spans.COLUMNS)))), problem
    _, losses, _ = taken
    wrong = np.argwhere(~np.isfinite(losses))
    if not len(wrong):
        return taken, None
    first = wrong[0][0]
    return taken, (
        EXIT_BAD_DATA,
        f"training diverged: the loss is {losses[first].min()} in {kind} step {first + 1}"
        f" (learning_rate {params['learning_rate']}, precision {params['precision']})",
    )


def bad_data(error: Exception, folder: Path | None) -> Problem | None:
    """Return exit code and message if reading images failed because of them, else None."""
    read = "IteratorGetNext" in error.message
    gone_or_odd = (tf.errors.NotFoundError, tf.errors.InvalidArgumentError)
    if not (
        isinstance(error, tf.errors.DataLossError) or (read and isinstance(error, gone_or_odd))
    ):
        return None
    files = sorted(str(path) for path in folder.rglob("*.tfrecord")) if folder else []
    code, said = input_errors.describe(error, files)
    return code, f"input: {said}"


def lack_of_support(params: dict[str, Any], error: Exception) -> Problem | None:
    """Return exit code and message if TensorFlow has no code for what was asked, else None: for a
    layout, a precision or XLA that not every device has."""
    usual = {"data_format": "NHWC", "precision": "float32", "xla": False}
    asked = [f"{name} {params[name]}" for name, value in usual.items() if params[name] != value]
    if asked and (line := input_errors.lacking(error)):
        return EXIT_UNSUPPORTED, f"{', '.join(asked)}: {line}"
    return None


def bytes_of_an_image(folder: Path | None, params: dict[str, Any]) -> float | None:
    """Return the mean bytes of an image in the files that a run reads; None where it reads none."""
    files = [] if folder is None else list(folder.rglob("*.tfrecord"))
    if params["input"] != "tfrecords" or not files:
        return None
    return sum(file.stat().st_size for file in files) / (len(files) * params["images_per_file"])


def bad_weights(trainer: Any) -> Problem | None:
    """Return exit code and message if a weight is not finite: a loss can be finite all the same."""
    for variable in (variable for copy in trainer.copies for variable in copy):
        with tf.device(variable.device):
            if not tf.reduce_all(tf.math.is_finite(variable)):
                return EXIT_BAD_DATA, "training diverged: not all weights are finite"
    return None


def count(variables: list[Any]) -> int:
    """Return the number of values in variables."""
    return sum(int(np.prod(variable.shape)) for variable in variables)
