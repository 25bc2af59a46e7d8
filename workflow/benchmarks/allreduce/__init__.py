"""Collectives of Horovod over message sizes: allreduce, broadcast, allgather."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
