"""Which points have an input that a model can learn from."""

from collections.abc import Mapping
from typing import Any

from scalesweep.experiment.results import ExperimentResults

# Inputs that hold nothing to learn: what a model makes of them says nothing.
DUMMY = ("dummy",)


def learns(results: ExperimentResults, row: Mapping[str, Any]) -> bool:
    """Whether a point's input can be learned from."""
    return {**results.entry["fixed"], **row}.get("input") not in DUMMY
