"""Training and testing on a rank: model, optimiser, and what is done in an epoch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from harness import no_exchange, ranks, tf_training
from harness.phases import Phases
from nt3 import loading, model, tables

NAMES = ("loss", "accuracy")


class Trainer:
    """Model, optimiser, and what is done in an epoch."""

    def __init__(self, params: dict[str, Any], samples: dict[str, Any], seed: int) -> None:
        """Build and trace, so that no epoch does; `samples` are tensors by split."""
        self.params, self.samples, self.seed = params, samples, seed
        self.batch = params["batch_size"]
        self.steps = loading.rows_of_rank(params) // self.batch
        base, together = params["learning_rate"], no_exchange.together(params["ranks"])
        self.schedule = tf_training.Schedule(
            base=base,
            peak=tf_training.scaled_rate(base, params["learning_rate_scaling"], together),
            warmup_epochs=params["warmup_epochs"],
            decay_epochs=(),
            decay_factors=(),
            steps_per_epoch=self.steps,
        )
        self.model = model.build(params)
        self.optimizer = model.make_optimizer(params["optimizer"], self.schedule(0))
        self.rate = tf_training.Rate(self.schedule, self.optimizer)
        self.optimizer._create_all_weights(self.model.trainable_variables)
        compression = params["gradient_compression"]
        self.step = tf_training.make_step(self.model, self.optimizer, model.measure, compression)
        self.evaluate = tf_training.make_evaluation(self.model, model.measure)
        for function, size in ((self.step, self.batch), (self.evaluate, None)):
            x = tf.TensorSpec((size, params["features"], 1))
            function.get_concrete_function(x, tf.TensorSpec((size,), tf.int32))

    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield the training batches of an epoch, in an order of this rank's own."""
        order = np.arange(loading.rows_of_rank(self.params))
        if self.params["shuffle"]:
            order = np.random.default_rng([self.seed, ranks.rank(), epoch]).permutation(order)
        return tables.batches(self.samples["train"], self.batch, order)

    def train(self, epoch: int) -> Any:
        """Train for an epoch, setting the learning rate before each step."""
        set_rate = self.rate.of_epoch(epoch)
        return tf_training.run_part(self.batches(epoch), self.step, self.steps, set_rate)

    def test(self, _epoch: int = 0) -> Any:
        """Measure the whole test table, as every rank does."""
        order = np.arange(self.params["test_samples"])
        batches = tables.batches(self.samples["test"], self.batch, order)
        return tf_training.run_part(batches, self.evaluate, -(-len(order) // self.batch))

    def tested(self) -> dict[str, float]:
        """Return loss and accuracy on the test table, the mean over the ranks."""
        return ranks.mean_over_ranks(dict(zip(NAMES, self.test().values, strict=True)))

    def run(self, phases: Phases) -> Any:
        """Train until the target is met or all epochs are done; return what was measured."""
        params, target = self.params, self.params["target_accuracy"]
        shared = params["partition"] == "epochs"
        return tf_training.train(
            no_exchange.epochs(
                params["total_epochs"] // (params["ranks"] if shared else 1), target
            ),
            self.train,
            self.test if params["validate"] else None,
            NAMES,
            phases,
            rate=lambda: self.rate.value,
            reached=lambda mean: target is not None and mean["validation_accuracy"] >= target,
        )
