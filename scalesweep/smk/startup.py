"""What happens while the Snakefile is parsed: the campaign is read, and the state of its runs."""

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scalesweep.config.campaign import Campaign
from scalesweep.config.study import shown
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.log import set_up
from scalesweep.core.status import Status
from scalesweep.slurm.commands import LEFT_TO_RUN
from scalesweep.smk.campaign_args import campaign_file, read_campaign, warn
from scalesweep.smk.config_keys import read_options
from scalesweep.smk.context import ROUND, SnakemakeContext
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.preflight import Preflight
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import Runs, leave_unsupported, note_state, take_stock, tell_lacking

_log = logging.getLogger(__name__)

# For a Slurm that does not answer: a call that only plans waits so long in vain.
PATIENCE_S = 60.0


def prepare(
    configfiles: Sequence[Path],
    overrides: Mapping[str, Any],
    cluster: bool,
    by_nodes: bool = False,
    batch: bool = False,
    collects: bool = False,
    dry: bool = False,
) -> tuple[SnakemakeContext, Preflight, JobRules]:
    """Read the campaign and the state of its runs.

    ``configfiles`` and ``overrides`` are Snakemake's --configfile and --config; with ``cluster``
    runs become jobs of Slurm, with ``batch`` of another batch system. ``by_nodes``: Snakemake was
    told how many nodes runs may have at once. ``collects``: it makes nothing again (--report);
    ``dry``: nor anything at all (-n).

    Written are only caches, and but in a dry run failure.json of runs whose Slurm job ended unseen:
    what this call is for is known when jobs start (``Preflight.begin``). Raises UserError.
    """
    set_up()
    options = read_options(overrides)
    path = _campaign_file(configfiles, options)
    plan = read_campaign(path, options, cluster, write=False)
    campaign = plan.campaign
    runs = campaign.unique_runs()
    states = _states(campaign, runs, options)
    warn(campaign, runs, states)
    for line in tell_lacking(states):
        _log.warning("%s", line)
    submission = Submission(campaign, states, runs) if cluster else None
    left = not all(state.settled for state in states.values())
    if submission and left and _ended_unseen(submission, dry):
        states = submission.states = _states(campaign, runs, options)
    round_ = os.environ.get(ROUND, "")
    context = SnakemakeContext(
        campaign, states, options, runs, submission, batch, plan, round_, collects
    )
    if context.awaited and campaign.results.exists() and not os.access(campaign.results, os.W_OK):
        # Snakemake would list its outputs as protected.
        raise UserError(f"{campaign.results}: cannot write to this folder: it is read-only")
    preflight = Preflight(context)
    # While parsing: of an existing file Snakemake takes a missing input for something that it may
    # skip, and only a newer one for a reason to make it again.
    if campaign.results.exists() and not collects:
        with contextlib.suppress(OSError):
            note_state(campaign, context.states)
    return context, preflight, JobRules(context, preflight, by_nodes and bool(campaign.site.slurm))


def _states(campaign: Campaign, runs: Runs, options: Mapping[str, str]) -> Mapping[str, RunState]:
    """The state of every run, those that are tried again for `retry` among the new ones."""
    states = take_stock(campaign, runs)
    if "retry" not in options:
        return states
    new = {i: RunState(Status.NEW) for i, s in states.items() if s.status == Status.UNSUPPORTED}
    return leave_unsupported(campaign.site, runs, {**states, **new})


def _ended_unseen(submission: Submission, dry: bool) -> bool:
    """Note the jobs of earlier Snakemake calls in the queue; whether some had ended unseen, of
    which the runs now have a failure."""
    try:
        submission.find_live(PATIENCE_S)
    except UserError as error:
        submission.blind = str(error)  # reported when jobs are to be submitted; a plan does without
        return False
    if submission.live:
        jobs = counted(len(submission.live), "run")
        _log.info("%s left out: jobs of an earlier call; %s", jobs, LEFT_TO_RUN)
    return not dry and submission.settle_past()


def _campaign_file(configfiles: Sequence[Path], options: Mapping[str, str]) -> Path:
    """The one campaign that is named by file or by name, or the default one."""
    if len(configfiles) > 1:
        raise UserError("--configfile: exactly one campaign file is allowed")
    if configfiles and "campaign" in options:
        raise UserError(
            f"--config campaign={options['campaign']}: {shown(configfiles[0])} is named with "
            "--configfile already; leave out one of the two"
        )
    if configfiles:
        return shown(configfiles[0])
    return campaign_file(options.get("campaign"), options.get("results"))
