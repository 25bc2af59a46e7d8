"""The fastest that TensorFlow and NumPy move large arrays: the four kernels of STREAM."""
