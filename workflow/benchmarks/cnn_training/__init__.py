"""Training steps of CNNs, by model, layout, precision and the way in which devices share."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
