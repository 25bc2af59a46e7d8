"""The fastest that TensorFlow and NumPy move large arrays: the four kernels of STREAM."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
