"""Training of CosmoFlow's network to a target error."""

import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
