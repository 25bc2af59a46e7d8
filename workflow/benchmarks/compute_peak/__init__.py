"""The fastest arithmetic that TensorFlow reaches here: matrix products and convolutions."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
