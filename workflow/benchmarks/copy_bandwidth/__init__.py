"""How fast TensorFlow copies between host and GPU, between GPUs, and within the host."""
