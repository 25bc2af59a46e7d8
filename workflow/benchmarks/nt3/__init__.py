"""Training of NT3's 1-D CNN on tables that every rank loads."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
