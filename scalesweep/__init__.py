"""Scaling studies of distributed training: the library behind the workflow.

docs/architecture.md draws the packages and says which may import which.
"""

__version__ = "0.2.0"
