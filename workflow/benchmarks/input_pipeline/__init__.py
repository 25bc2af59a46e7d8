"""What each technique of an input pipeline is worth, from serial reading to a cache."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
