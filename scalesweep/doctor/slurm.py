"""Whether Slurm would take the campaign's largest request, asked without a job."""

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.doctor.judge import FAILED, OK, Check
from scalesweep.jobs.job_requests import request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.run_state import scan


def examine_sbatch(campaign: Campaign) -> Check:
    """``sbatch --test-only`` with the campaign's largest request."""
    site = campaign.site
    mend = f"correct slurm in {site.file}, or make the campaign's largest run smaller"
    try:
        commands.check_commands()
        shape = largest_request(campaign)
    except UserError as error:
        return Check("sbatch", FAILED, str(error), mend)
    words = " ".join(shape.sbatch_words())
    if refused := commands.refusal(shape.sbatch_words()):
        return Check("sbatch", FAILED, f"Slurm refuses sbatch {words}: {refused}", mend)
    return Check("sbatch", OK, f"Slurm accepts the largest request: {words}")


def largest_request(campaign: Campaign) -> Shape:
    """The request of the campaign's run that takes most nodes, ranks and time. Raises UserError."""
    runs = campaign.unique_runs()
    estimates = Estimates(campaign, scan(campaign.runs_folder, runs))
    # One run of each point: its repeats request the same.
    first = {id(run.point): (experiment, run) for experiment, run in runs.values()}
    shapes = [
        request_for(campaign, experiment, run, estimates).shape
        for experiment, run in first.values()
    ]
    return max(shapes, key=lambda shape: (shape.nodes, shape.tasks, shape.minutes))
