"""Runs of which no two may overlap: ``concurrent_runs: 1`` of a campaign or an experiment."""

from collections.abc import Sequence
from dataclasses import replace

from scalesweep.config.experiment import Experiment
from scalesweep.config.repeats import ids_of
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError


def one_at_a_time(site: Site) -> Site:
    """The site for a campaign whose runs are made one after the other, in job bundles too."""
    slurm = None if site.slurm is None else replace(site.slurm, pack_nodes=None)
    return replace(site, concurrent_runs=1, slurm=slurm)


def with_shared_alone(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The experiments, those that share runs with one whose runs are alone like that one."""
    alone = {i for experiment in experiments if experiment.alone for i in ids_of(experiment.runs)}
    if not alone:
        return tuple(experiments)
    return tuple(
        replace(experiment, alone=experiment.alone or not alone.isdisjoint(ids_of(experiment.runs)))
        for experiment in experiments
    )


def check_alone(experiment: Experiment, site: Site, where: str) -> None:
    """Raise UserError for an experiment whose runs are alone, on a site that measures runs at the
    same time in an allocation. ``where``: campaign file and experiment."""
    if experiment.alone and site.slurm is not None and site.slurm.pack_nodes is not None:
        raise UserError(
            f"{where}.concurrent_runs: slurm.pack.nodes of {site.file} measures runs at the same "
            "time; set concurrent_runs: 1 for the whole campaign, or leave out slurm.pack.nodes"
        )
