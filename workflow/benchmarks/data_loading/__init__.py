"""How fast every rank reads its share of the CosmoFlow-like data set."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
