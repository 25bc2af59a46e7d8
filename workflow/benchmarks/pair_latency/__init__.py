"""Latency between every two ranks, over TCP."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
