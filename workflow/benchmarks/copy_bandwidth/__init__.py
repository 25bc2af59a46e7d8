"""How fast TensorFlow copies between host and GPU, between GPUs, and within the host."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
