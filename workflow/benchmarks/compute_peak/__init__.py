"""The fastest arithmetic that TensorFlow reaches here: matrix products and convolutions."""
