"""Which points have an input that a model can learn from."""

from collections.abc import Mapping
from typing import Any

from scalesweep.core.joined_experiments import parameters_at
from scalesweep.experiment.results import ExperimentResults
from scalesweep.tables.file_rates import DUMMY


def learns(results: ExperimentResults, row: Mapping[str, Any]) -> bool:
    """Whether a point's input can be learned from."""
    return parameters_at(results.entry, row).get("input") not in DUMMY
