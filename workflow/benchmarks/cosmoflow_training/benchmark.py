"""What a rank does: build the network, train it on the rank's own samples, validate.

Per epoch, on every rank: barrier, training, barrier, validation, barrier (`harness.tf_training`).
Pipelines are opened and destroyed inside these times.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from cosmoflow_data import dataset, files, pipeline
from cosmoflow_training import model
from harness import input_errors, no_exchange, ranks
from harness.native import Work
from harness.phases import Phases
from harness.program import EXIT_PARAMETERS, EXIT_UNSUPPORTED, ProgramError, Run
from harness.tf_trainer import Training
from harness.tf_training import Batches

Batch = tuple[tf.Tensor, tf.Tensor]  # x float32 [batch, *sample_shape], y float32 [batch, 4]
# Against gradients too small for float16.
FLOAT16_LOSS_SCALE = 128.0
SIZES = ("sample_shape", "conv_layers", "filters", "kernel_size", "dense_units", "dropout")


class Program(Training):
    """Training of CosmoFlow's network."""

    names = ("loss", "mae")
    momentum = 0.9

    def __init__(self, run: Run, phases: Phases) -> None:
        """Check what parameters do not go together."""
        super().__init__(run, phases)
        params = self.params
        edges, factors = params["decay_epochs"], params["decay_factors"]
        if edges != sorted(set(edges)) or len(edges) != len(factors):
            said = f"decay_epochs {edges} must ascend, with a factor for each, not {factors}"
            raise ProgramError(EXIT_PARAMETERS, said)
        self.reads = params["input"] != "dummy"
        self.samples, self.epochs = params["samples_per_rank"], params["epochs"]
        self.validates = params["validation_samples_per_rank"] > 0
        self.base_rate = params["base_learning_rate"]
        batch = no_exchange.together(params["ranks"]) * params["batch_size"]
        self.rate_factor = batch / params["learning_rate_reference_batch"]

    def start(self) -> None:
        """Start the ranks; set precision and determinism too."""
        super().start()
        tf.keras.mixed_precision.set_global_policy(self.params["precision"])
        if self.params["deterministic"] and tf.config.get_visible_devices("GPU"):
            tf.config.experimental.enable_op_determinism()

    def set_up(self) -> None:
        """See that all files are there; build the network, the same on every rank."""
        params = self.params
        with self.phases("data_staging"):
            if self.reads:
                files.require(self.run)
        with self.phases("build"):
            self.make_input()
            scale = FLOAT16_LOSS_SCALE if params["precision"] == "mixed_float16" else 1.0
            measure = model.make_measure(params["loss"])
            shapes = (params["sample_shape"], (dataset.TARGETS,))
            network = model.build(**{name: params[name] for name in SIZES})
            self.build(network, measure, shapes, loss_scale=scale)

    def make_input(self) -> None:
        """Trace the pipeline, which would take 20 ms more each time; or make the one batch."""
        params = self.params
        if not self.reads:
            self.dummy = dummy_batch(params, [self.run.seed, ranks.rank()])
            return

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def opened(names: tf.Tensor) -> tf.data.Dataset:
            return pipeline.batches(names, params)

        opened.get_concrete_function()
        self.opened = opened

    def batches(self, split: str, epoch: int) -> tuple[Batches, int]:
        """Return this rank's batches of its files, or the same one again and again."""
        samples = "samples_per_rank" if split == "train" else "validation_samples_per_rank"
        steps = self.params[samples] // self.params["batch_size"]
        return self.read(split, epoch) if self.reads else itertools.repeat(self.dummy), steps

    def read(self, split: str, epoch: int) -> Iterator[Batch]:
        """Yield the batches of this rank's files, whose pipeline is opened with the first.

        Raises ProgramError: 65 when a file is damaged, 66 when one is gone.
        """
        names = self.names_of(epoch)[split]
        try:
            yield from self.opened(tf.constant(names, tf.string))
        except tf.errors.OpError as error:
            code, said = input_errors.describe(error, names, self.params["compression"])
            raise ProgramError(code, f"rank {ranks.rank()}, {split}: {said}") from None

    def names_of(self, epoch: int) -> dict[str, list[str]]:
        """Return the files that this rank reads: those of training in an order by its seed."""
        where = self.params, self.run.data, ranks.rank(), epoch
        return files.files_of_rank(*where, self.run.seed, shuffled=("train",))

    def measure(self) -> None:
        """Train; ProgramError (code 69) where TensorFlow has no code for a precision."""
        try:
            super().measure()
        except tf.errors.OpError as error:
            if "Horovod has been shut down" in error.message:
                raise ProgramError(1, "") from None  # another rank has ended, and says why
            if not (line := input_errors.lacking(error)):
                raise
            reason = f"precision {self.params['precision']}: {line}"
            raise ProgramError(EXIT_UNSUPPORTED, reason) from None

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather what each epoch gave, and the size of all files that were read."""
        self.size = None
        if self.reads:
            size = float(files.bytes_of(self.names_of(0)["train"]))
            self.size = ranks.gather(np.array(size))
        else:  # its errors mean nothing
            self.history.values.clear()
        return super().gather()

    def work(self) -> Work:
        """Return the samples of training, and the bytes of their files."""
        work = super().work()
        if self.size is not None:
            work["bytes_per_epoch"] = int(self.size.sum())
        return work


def dummy_batch(params: dict[str, Any], seed: list[int]) -> Batch:
    """Return a batch of random numbers, like the data set's in shape and range, on the device."""
    numbers = np.random.default_rng(seed)
    shape = (params["batch_size"], *params["sample_shape"])
    x = numbers.random(shape, np.float32) * np.float32(2.0)
    y = numbers.uniform(-1.0, 1.0, (params["batch_size"], dataset.TARGETS)).astype(np.float32)
    return tf.identity(x), tf.identity(y)
