"""What the tables say, as sentences, each with the numbers it rests on.

A rule says nothing rather than something its data cannot carry: "best", "falls under" and
"faster" are claimed only where intervals are clear of each other; one repeat confirms nothing.
"""

from collections.abc import Callable

from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.accuracy import (
    accuracy_over_scale,
    energy_against_time,
    input_cost,
    target_time,
)
from scalesweep.findings.base import Finding
from scalesweep.findings.canary import at_equal_machines, canary
from scalesweep.findings.ceilings import machine_ceilings, network_fit
from scalesweep.findings.compare import best_value, site_ratio, value_ratio
from scalesweep.findings.drift import drift
from scalesweep.findings.efficiency import largest_loss
from scalesweep.findings.general import (
    best_configuration,
    cache_effect,
    coverage,
    outlier_runs,
    oversubscribed,
    waiting,
    warnings,
)
from scalesweep.findings.links import slow_links
from scalesweep.findings.machine import against_machine
from scalesweep.findings.node_hours import best_for_a_node_hour
from scalesweep.findings.prediction import prediction
from scalesweep.findings.ranks import slow_ranks
from scalesweep.findings.reading import data_loading, input_share
from scalesweep.findings.reading_ceiling import against_reads
from scalesweep.findings.repeats import until_precise
from scalesweep.findings.roofline import step_against_roof
from scalesweep.findings.scaling import efficiency_at_largest, efficiency_threshold
from scalesweep.findings.score import score
from scalesweep.findings.spend import spent
from scalesweep.findings.target_times import predicted_target_times
from scalesweep.findings.threads import best_threads
from scalesweep.findings.timeline import timeline_signs

__all__ = ["Finding", "find"]


def find(study: ExperimentResults) -> list[Finding]:
    """All findings of one experiment, those on its main metric first."""
    rules: list[Callable[[ExperimentResults], list[Finding]]] = [
        machine_ceilings,
        network_fit,
        slow_links,
        best_configuration,
        best_threads,
        best_value,
        value_ratio,
        site_ratio,
        efficiency_at_largest,
        efficiency_threshold,
        prediction,
        best_for_a_node_hour,
        cache_effect,
        against_reads,
        largest_loss,
        against_machine,
        step_against_roof,
        score,
        target_time,
        predicted_target_times,
        accuracy_over_scale,
        energy_against_time,
        input_share,
        input_cost,
        data_loading,
        waiting,
        slow_ranks,
        timeline_signs,
        drift,
        canary,
        at_equal_machines,
        oversubscribed,
        until_precise,
        spent,
        outlier_runs,
        warnings,
        coverage,
    ]
    return [finding for rule in rules for finding in rule(study)]
