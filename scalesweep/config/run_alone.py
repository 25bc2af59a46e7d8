"""Runs of which no two may overlap: ``concurrent_runs: 1`` of a campaign or an experiment."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import ids_of


def with_shared_alone(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The experiments, those that share runs with one whose runs are alone like that one."""
    alone = {i for experiment in experiments if experiment.alone for i in ids_of(experiment.runs)}
    if not alone:
        return tuple(experiments)
    return tuple(
        replace(experiment, alone=experiment.alone or not alone.isdisjoint(ids_of(experiment.runs)))
        for experiment in experiments
    )
