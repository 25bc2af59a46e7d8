"""A program that trains one network by epochs under Horovod: what NT3 and CosmoFlow share."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from harness import horovod_settings, no_exchange, ranks, spans, tf_spans, tf_training
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work
from harness.tf_training import Batches, Measure, Part, Schedule


class Training(Benchmark):
    """A program says what its network is (`build`) and what its batches are."""

    # Of what a step measures of its samples: the loss, and what parameter target_* is of.
    names: ClassVar[tuple[str, str]]
    momentum: ClassVar[float] = 0.0
    samples: int  # that a rank trains on in an epoch
    epochs: int  # at most
    validates: bool
    base_rate: float
    rate_factor: float  # of the peak over the base, before `learning_rate_scaling`

    @abstractmethod
    def batches(self, split: str, epoch: int) -> tuple[Batches, int]:
        """Return the batches of ``train`` or ``valid`` in an epoch, and how many there are."""

    def start(self) -> None:
        """Start the ranks, and seed this one."""
        tf_training.start(self.params)
        tf_training.set_seeds(self.run.seed, ranks.rank())

    def build(
        self,
        model: tf.keras.Model,
        measure: Measure,
        shapes: Sequence[Sequence[int]],
        labels: tf.DType = tf.float32,
        loss_scale: float = 1.0,
    ) -> None:
        """Make optimiser and steps, traced for samples and labels of `shapes`."""
        params, self.model = self.params, model
        self.schedule = self._schedule()
        self.rate = self.schedule(0)
        optimizers = tf.keras.optimizers.legacy  # these update a variable in one operation
        adam = params.get("optimizer") == "adam"
        self.optimizer = (
            optimizers.Adam(self.rate) if adam else optimizers.SGD(self.rate, self.momentum)
        )
        self.optimizer._create_all_weights(model.trainable_variables)
        compression = params["gradient_compression"]
        self.step = tf_training.make_step(model, self.optimizer, measure, compression, loss_scale)
        self.evaluate = tf_training.make_evaluation(model, measure)
        for function, size in ((self.step, params["batch_size"]), (self.evaluate, None)):
            x, y = ((size, *shape) for shape in shapes)
            function.get_concrete_function(tf.TensorSpec(x), tf.TensorSpec(y, labels))

    def warm_up(self) -> None:
        """Give every rank the weights of rank 0."""
        with self.phases("broadcast"):
            tf_training.broadcast(self.model, self.optimizer)
            ranks.barrier()

    def _schedule(self) -> Schedule:
        params, base = self.params, self.base_rate
        return Schedule(
            base=base,
            peak=tf_training.scaled_rate(base, params["learning_rate_scaling"], self.rate_factor),
            warmup_epochs=params["warmup_epochs"],
            decay_epochs=tuple(params.get("decay_epochs", ())),
            decay_factors=tuple(params.get("decay_factors", ())),
            steps_per_epoch=self.samples // params["batch_size"],
        )

    def measure(self) -> None:
        """Train until the target is met or all epochs are done."""
        self.history = tf_training.train(
            no_exchange.epochs(self.epochs, self.target),
            self.train,
            self.validate if self.validates else None,
            self.names,
            self.phases,
            rate=lambda: self.rate,
            reached=self.reached,
        )

    def train(self, epoch: int) -> Part:
        """Train for an epoch, setting the learning rate before each step."""
        batches, steps = self.batches("train", epoch)

        def set_rate(number: int) -> None:
            rate = self.schedule(epoch * self.schedule.steps_per_epoch + number)
            if rate != self.rate:
                self.optimizer.learning_rate.assign(rate)
                self.rate = rate

        return tf_training.run_part(batches, self.step, steps, set_rate)

    def validate(self, epoch: int) -> Part:
        """Measure the samples that are not trained on."""
        batches, steps = self.batches("valid", epoch)
        return tf_training.run_part(batches, self.evaluate, steps)

    @property
    def target(self) -> float | None:
        """Where training ends, as a mean over validation."""
        return self.params[f"target_{self.names[1]}"]

    def reached(self, mean: dict[str, float]) -> bool:
        """Return whether validation has met the target."""
        if self.target is None:
            return False
        value = mean[f"validation_{self.names[1]}"]
        return value >= self.target if self.names[1] == "accuracy" else value <= self.target

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave."""
        return self.history.arrays()

    def work(self) -> Work:
        """Return the samples of training."""
        each = self.params["ranks"] * self.samples
        samples = each * len(self.history.total)
        return {"samples_per_epoch": each, "samples": samples, "phases": ["training"]}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return those of every training."""
        samples, target_at = self.params["ranks"] * self.samples, self.history.target_at
        return tf_training.training_metrics(arrays, samples, target_at, self.model)

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return how it was trained, and where the time of its steps went."""
        params, late = self.params, self.history.out_of_order
        exchanged = horovod_settings.exchanged(
            self.model.trainable_variables, params["gradient_compression"], params["ranks"]
        )
        steps = self.schedule.steps_per_epoch
        return {
            "batch": {"global": params["ranks"] * params["batch_size"]},
            "spans": spans.about(tf_spans.method(), steps, out_of_order=late),
            "exchange": exchanged,
            "learning_rate": {"base": self.schedule.base, "peak": self.schedule.peak},
            "run_seed": self.run.seed,
        }
