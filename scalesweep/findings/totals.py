"""Totals that ranks of a run print differently: nothing on such a metric is clear."""

import math
import re

from scalesweep.core.formatting import percent
from scalesweep.experiment.results import ExperimentResults

# Ranks that print a total may differ by this much, as far as what is said holds for each of them.
APART = 0.05
_DISAGREE = re.compile(r"metric '([^']+)': \d+ ranks disagree: (\S+) to (\S+), using")


def apart_of(results: ExperimentResults, metric: str) -> float:
    """By which share ranks of a run differ, at most, in what they print of the same total."""
    most = 0.0
    for row in results.rows("runs", ["warnings"]):
        for name, low, high in _DISAGREE.findall(row["warnings"] or ""):
            if name == metric:
                least = float(low)
                most = max(most, float(high) / least - 1 if least > 0 else math.inf)
    return most


def unsure(apart: float) -> str:
    """What is not certain where ranks are so far ``apart``."""
    amount = f"up to {percent(apart)}" if math.isfinite(apart) else "widely"
    return (
        f"ranks of a run print values of this total that are {amount} apart, and nothing says "
        "which of them is right"
    )


def unsure_total(results: ExperimentResults, metric: str) -> str:
    """Why nothing on a metric is clear: ranks print totals that differ; empty if they agree."""
    apart = apart_of(results, metric)
    return unsure(apart) if apart > APART else ""
