"""``stop`` of an experiment: when larger counts of a series are not worth their node-hours."""

import re
from dataclasses import dataclass

from scalesweep.analysis.metrics import EPOCH_METRICS
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import ExperimentKeys
from scalesweep.config.experiment_checks import check_metric
from scalesweep.core.errors import UserError
from scalesweep.core.scaling_kinds import OF_SAMPLES

# Made of two scales of a series.
EFFICIENCY, SPEEDUP = "efficiency", "speedup"
_FORM = re.compile(r"([A-Za-z_][\w.-]*) ?(<=?|>=?) ?([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")


@dataclass(frozen=True, slots=True)
class StopRule:
    """A metric that is on one side of a limit: ``below`` it, or above."""

    metric: str
    below: bool
    limit: float
    text: str  # as it is written

    @property
    def of_ratio(self) -> bool:
        """Whether the metric compares a scale with the smallest of its series."""
        return self.metric in (EFFICIENCY, SPEEDUP)


def stop_rule(benchmark: Benchmark, spec: ExperimentKeys, where: str) -> StopRule | None:
    """The rule that an experiment states; None where all its counts are measured.

    Raises UserError.
    """
    if spec.stop is None:
        return None
    text = " ".join(spec.stop.when.split())
    match = _FORM.fullmatch(text)
    if match is None:
        raise UserError(
            f"{where}.when: {text!r}: must be a metric, <, <=, > or >=, and a number, such as "
            "'efficiency < 0.3'"
        )
    rule = StopRule(match[1], match[2][0] == "<", float(match[3]), text)
    if rule.of_ratio and spec.scaling not in OF_SAMPLES:
        raise UserError(
            f"{where}.when: {rule.metric} needs the experiment's scaling; set scaling: weak or "
            "strong"
        )
    known = (*EPOCH_METRICS, EFFICIENCY, SPEEDUP)
    if rule.metric not in known:
        check_metric(benchmark, rule.metric, f"{where}.when", known)
    return rule
