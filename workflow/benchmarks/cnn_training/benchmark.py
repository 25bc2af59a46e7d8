"""Training by steps (`steps`), or by epochs: all training images, then those that are held back.

A model of its own is validated, with the weights that this rank's first device has trained: the
same computation in every mode. Every rank validates on all images that are held back.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from cnn_training import images
from cnn_training.compute import make_model
from cnn_training.steps import CNNTraining
from harness import no_exchange, ranks, spans, tf_spans, tf_training
from harness.frame import Arrays
from harness.native import Metric, Work, metric
from harness.phases import Phases
from harness.program import Run

LEARNED = ("loss",)
VALIDATED = ("validation_loss", "validation_accuracy")


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
            LEARNED,
            self.phases,
            rate=lambda: params["learning_rate"],
            reached=lambda mean: target is not None and mean["validation_accuracy"] >= target,
            validated=VALIDATED,
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

    def about_spans(self) -> dict[str, Any]:
        """Return what is noted of the spans of steps."""
        return spans.about(tf_spans.method(), self.steps, self.history.out_of_order)


def measure(labels: tf.Tensor, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return cross-entropy of each image, and whether the network names its class."""
    right = tf.equal(tf.argmax(logits, axis=-1, output_type=labels.dtype), labels)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits), right


def Program(run: Run, phases: Phases) -> CNNTraining:
    """Return a rank's part in a run: of timed steps, or of epochs."""
    return (CNNTraining if run.params["epochs"] is None else EpochTraining)(run, phases)
