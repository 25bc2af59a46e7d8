"""What the file system gives to plain reads, without TensorFlow in between."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
