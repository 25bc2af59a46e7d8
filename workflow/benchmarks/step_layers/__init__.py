"""Each layer of a model timed apart, forward and backward, with its FLOP and bytes."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
