"""What the file system gives to plain reads, without TensorFlow in between."""
