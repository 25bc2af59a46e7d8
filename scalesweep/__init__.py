"""Scaling studies of distributed deep learning: the library in front of the runs.

Pure functions that never import TensorFlow or Snakemake; see docs/architecture.md.
"""

__version__ = "0.1.0"
