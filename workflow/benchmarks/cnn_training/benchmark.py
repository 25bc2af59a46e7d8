"""What a rank does: place itself, build the network, and train by steps (`steps`) or by epochs.

Each step ends when its loss is known to the program, and is timed on every rank. All ranks meet
before the first timed step and after the last one.

An epoch is all training images, then those that are held back. A model of its own is validated,
with the weights that this rank's first device has trained: the same computation in every mode.
Every rank validates on all images that are held back.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import cluster, images, metrics, updates
from cnn_training.trainer import Taken, make_model
from harness import horovod_settings, input_errors, no_exchange, ranks, spans, tf_spans, tf_training
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError, Run

USUAL = {"data_format": "NHWC", "precision": "float32", "xla": False}  # which all devices have


class CNNTraining(Benchmark):
    """Steps of training, shared among devices in one of several ways."""

    problem: tuple[int, str] | None = None  # of this rank, until all ranks meet
    out_of_order = 0  # steps with such stamps

    def start(self) -> None:
        """Start the ranks, place this one, build the network and all that a step needs.

        Without exchange, of whatever mode, every device trains by itself.
        """
        if no_exchange.left_out():
            alone = {"variable_update": "independent", "all_reduce": "auto"}
            self.params = {**self.params, **alone}
        self.steps = self.params["batches"]
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
            self.timed = self.take("timed", self.steps)
            ranks.raise_together(self.problem)
            self.wall = time.perf_counter() - began

    def take(self, kind: str, steps: int) -> Taken:
        """Take steps of a kind, and keep that a loss is not finite for when all ranks meet.

        Raises ProgramError at once for a damaged file, or if TensorFlow has no code for what was
        asked: a layout, a precision or XLA that not every device has.
        """
        params = self.params
        asked = [f"{name} {params[name]}" for name in USUAL if params[name] != USUAL[name]]
        try:
            taken = self.trainer.run(steps)
        except tf.errors.DataLossError as error:
            files = images.stand_in_files(params, self.run.data)
            raise ProgramError(*input_errors.describe(error, files)) from None
        except tf.errors.OpError as error:
            if asked and (line := input_errors.lacking(error)):
                raise ProgramError(EXIT_UNSUPPORTED, f"{', '.join(asked)}: {line}") from None
            raise
        losses = taken[1]
        if len(wrong := np.argwhere(~np.isfinite(losses))):
            first = wrong[0][0]
            said = f"the loss is {losses[first].min()} in {kind} step {first + 1}"
            used = f"learning_rate {params['learning_rate']}, precision {params['precision']}"
            self.problem = EXIT_BAD_DATA, f"training diverged: {said} ({used})"
        return taken

    def check_weights(self) -> None:
        """Raise ProgramError on all ranks for a loss or weight of any rank that is not finite: the
        loss can be finite all the same."""
        for variable in (variable for copy in self.trainer.copies for variable in copy):
            with tf.device(variable.device):
                if not tf.reduce_all(tf.math.is_finite(variable)):
                    said = "training diverged: not all weights are finite"
                    self.problem = self.problem or (EXIT_BAD_DATA, said)
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
        if self.params["input"] == "tfrecords":
            files = images.stand_in_files(self.params, self.run.data)
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
        meet = trainer.synchronous and (params["ranks"] == 1 or trainer.strategy != "none")
        notes = {
            "mode": {"synchronous": meet, "strategy": trainer.strategy},
            "spans": spans.about(tf_spans.method(), self.steps, self.out_of_order),
            "batch": {"global": params["ranks"] * self.images_per_step},
        }
        if trainer.strategy == "horovod":
            variables, compression = trainer.model.trainable_variables, params["compression"]
            notes["exchange"] = horovod_settings.exchanged(variables, compression, params["ranks"])
        return notes


class EpochTraining(CNNTraining):
    """Epochs of training, each of them validated."""

    def __init__(self, run: Run, phases: Phases) -> None:
        """Draw the seed of this run: repeats start from other weights and take another order."""
        super().__init__(run, phases)
        self.params = {**self.params, "seed": run.seed}

    def warm_up(self) -> None:
        """Trace a step without taking one, and get the validation ready."""
        with self.phases("warmup"):
            self.steps = self.params["data_images"] // (self.params["ranks"] * self.images_per_step)
            with tf.device(self.place.devices[0]):
                self.validated = make_model(self.params)
            self.evaluate = tf_training.make_evaluation(self.validated, measure)
            self.held_back = images.held_back(self.params, self.run.data)
            self.trainer.run(0)
            ranks.barrier()

    def measure(self) -> None:
        """Train until the target is met or all epochs are done."""
        params, target = self.params, self.params["target_accuracy"]
        self.history = tf_training.train(
            no_exchange.epochs(params["epochs"], target),
            self.train,
            self.validate,
            ["loss"],
            self.phases,
            rate=lambda: params["learning_rate"],
            reached=lambda mean: target is not None and mean["validation_accuracy"] >= target,
            validated=["validation_loss", "validation_accuracy"],
        )

    def train(self, epoch: int) -> tf_training.Part:
        """Take the steps of an epoch. What went wrong is said by ``validate``, on all ranks."""
        _, losses, spent = self.take(f"epoch {epoch + 1}:", self.steps)
        known = spent if tf_spans.method() != spans.NONE else spent[:0]
        return tf_training.Part(np.array([losses.mean()]), float(known[:, 0].sum()), known)

    def validate(self, _epoch: int) -> tf_training.Part:
        """Validate the weights of this rank's first device; ProgramError on all ranks where the
        epoch went wrong on one."""
        self.check_weights()
        pairs = zip(self.validated.variables, self.trainer.model.variables, strict=True)
        for ours, trained in pairs:
            copies = getattr(trained, "values", None)
            ours.assign(copies[0] if isinstance(copies, tuple) else trained)
        batches = -(-self.params["validation_images"] // self.params["batch_size"])
        return tf_training.run_part(self.held_back, self.evaluate, batches)

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave, ``[epoch, rank]``."""
        arrays = self.history.arrays()
        self.out_of_order = self.history.out_of_order
        if tf_spans.method() == spans.NONE:
            del arrays["span_input"]  # not known
        return arrays

    def work(self) -> Work:
        """Return the images of training, over all epochs."""
        images = self.params["data_images"]
        samples = images * len(self.history.total)
        return {"samples_per_epoch": images, "samples": samples, "phases": ["training"]}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return those of every training, and the rate as images/s."""
        images = self.params["data_images"]
        model = self.trainer.model
        learned = tf_training.training_metrics(arrays, images, self.history.target_at, model)
        rate = learned.pop("training_samples_per_second")["value"]
        return {"total_images_per_second": metric(rate, "images/s", "higher"), **learned}


def measure(labels: tf.Tensor, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return cross-entropy of each image, and whether the network names its class."""
    right = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), right


def Program(run: Run, phases: Phases) -> CNNTraining:
    """Return a rank's part in a run: of timed steps, or of epochs."""
    return (CNNTraining if run.params["epochs"] is None else EpochTraining)(run, phases)
