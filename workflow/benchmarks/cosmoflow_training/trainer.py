"""Model, optimiser and learning rate, and what a rank does with them in an epoch."""

from typing import Any

import tensorflow as tf

from cosmoflow_training import inputs, model
from harness import input_errors, no_exchange, tf_training
from harness.phases import Phases
from harness.program import EXIT_UNSUPPORTED, ProgramError

NAMES = ("loss", "mae")
# Against gradients too small for float16.
FLOAT16_LOSS_SCALE = 128.0


class Trainer:
    """Model, optimiser and what is done in an epoch."""

    def __init__(self, params: dict[str, Any], epochs: inputs.Epochs) -> None:
        """Build and trace; `epochs` gives the batches of a split and an epoch (`inputs.make`)."""
        self.params = params
        self.epochs = epochs
        base = params["base_learning_rate"]
        batch = no_exchange.together(params["ranks"]) * params["batch_size"]
        factor = batch / params["learning_rate_reference_batch"]
        self.steps = params["samples_per_rank"] // params["batch_size"]
        self.schedule = tf_training.Schedule(
            base=base,
            peak=tf_training.scaled_rate(base, params["learning_rate_scaling"], factor),
            warmup_epochs=params["warmup_epochs"],
            decay_epochs=tuple(params["decay_epochs"]),
            decay_factors=tuple(params["decay_factors"]),
            steps_per_epoch=self.steps,
        )
        sizes = ("sample_shape", "conv_layers", "filters", "kernel_size", "dense_units", "dropout")
        self.model = model.build(**{name: params[name] for name in sizes})
        self.optimizer = model.make_optimizer(params["optimizer"], self.schedule(0))
        self.rate = tf_training.Rate(self.schedule, self.optimizer)
        self.optimizer._create_all_weights(self.model.trainable_variables)
        measure = model.make_measure(params["loss"])
        scale = FLOAT16_LOSS_SCALE if params["precision"] == "mixed_float16" else 1.0
        compression = params["gradient_compression"]
        self.step = tf_training.make_step(self.model, self.optimizer, measure, compression, scale)
        self.evaluate = tf_training.make_evaluation(self.model, measure)
        shape = (params["batch_size"], *params["sample_shape"])
        batch_spec = (tf.TensorSpec(shape), tf.TensorSpec((shape[0], model.TARGETS)))
        for function in (self.step, self.evaluate):
            function.get_concrete_function(*batch_spec)

    def train(self, epoch: int) -> tf_training.Part:
        """Train for an epoch, setting the learning rate before each step."""
        set_rate = self.rate.of_epoch(epoch)
        return tf_training.run_part(self.epochs("train", epoch), self.step, self.steps, set_rate)

    def validate(self, epoch: int) -> tf_training.Part:
        """Measure the rank's own validation samples."""
        steps = self.params["validation_samples_per_rank"] // self.params["batch_size"]
        return tf_training.run_part(self.epochs("valid", epoch), self.evaluate, steps)

    def run(self, phases: Phases) -> tf_training.History:
        """Train until the target is met or all epochs are done; return what was measured.

        Raises ProgramError (code 69) where TensorFlow has no code for a precision.
        """
        target = self.params["target_mae"]
        try:
            return tf_training.train(
                no_exchange.epochs(self.params["epochs"], target),
                self.train,
                self.validate if self.params["validation_samples_per_rank"] else None,
                NAMES,
                phases,
                rate=lambda: self.rate.value,
                reached=lambda mean: target is not None and mean["validation_mae"] <= target,
            )
        except tf.errors.OpError as error:
            if "Horovod has been shut down" in error.message:
                raise ProgramError(1, "") from None  # another rank has ended, and says why
            if not (line := input_errors.lacking(error)):
                raise
            reason = f"precision {self.params['precision']}: {line}"
            raise ProgramError(EXIT_UNSUPPORTED, reason) from None
