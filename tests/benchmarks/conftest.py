"""What tests of the benchmarks share."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
