"""Probes in TensorFlow, whose ranks are Horovod's."""

from typing import Any, ClassVar

import tensorflow as tf

from harness import ranks, tf_training
from harness.frame import Benchmark
from harness.probe import SweepProbe


class Probe(SweepProbe):
    """A probe whose calls are TensorFlow's."""

    lacking: ClassVar[tuple[type[Exception], ...]] = (
        tf.errors.UnimplementedError,
        tf.errors.InvalidArgumentError,
    )

    def start(self) -> None:
        """Start the ranks as training does, each on a GPU of its own where there are any."""
        inter, intra = self.threads()
        tf_training.start(self.params | {"inter_threads": inter, "intra_threads": intra})
        ranks.barrier()


def wait(result: Any) -> Any:
    """Return `result` once it is computed: calls on a GPU return before."""
    if tf.config.list_logical_devices("GPU"):
        tf.test.experimental.sync_devices()
    return result


class HostOnly(Benchmark):
    """A benchmark that needs no GPU, and so leaves its memory be."""

    def start(self) -> None:
        """Start the ranks."""
        tf.config.set_visible_devices([], "GPU")
        ranks.start(self.params["ranks"], *self.threads())

    def threads(self) -> tuple[int, int]:
        """Return TensorFlow's threads: one of each if it has nothing to do."""
        return self.params.get("inter_threads", 1), self.params.get("intra_threads", 1)
