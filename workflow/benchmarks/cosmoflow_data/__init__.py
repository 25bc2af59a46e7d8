"""The CosmoFlow-like data set, for every benchmark that reads it: format, files, pipeline."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
