"""Runs of which no two may overlap: ``concurrent_runs: 1`` of a campaign or an experiment."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.config.experiment import Experiment


def with_shared_alone(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The experiments, those that share runs with one whose runs are alone like that one."""
    alone = {run.run_id for e in experiments if e.alone for run in e.runs}
    if not alone:
        return tuple(experiments)
    return tuple(
        replace(e, alone=e.alone or not alone.isdisjoint(run.run_id for run in e.runs))
        for e in experiments
    )
