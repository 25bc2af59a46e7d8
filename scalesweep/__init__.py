"""Scaling studies of distributed training: the library behind the workflow.

docs/architecture.md draws the packages and says which may import which.
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scalesweep.results import Results

__version__ = "1.0.0rc1"


def load(results: "str | Path") -> "Results":
    """The tables of a results folder as pandas frames (``points``, ``runs``, ``comparisons``,
    ``breakdown`` and ``findings`` of all experiments), its samples, figures and predictions.

    Raises UserError if the folder has no tables.
    """
    from scalesweep.results import load as read

    return read(results)
