"""What happens while the Snakefile is parsed: the campaign is read, and the state of its runs."""

import logging
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalesweep.config.overrides import REPORT, RUN, read_options
from scalesweep.config.study import campaign_file, shown
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.log import set_up
from scalesweep.core.status import Status
from scalesweep.jobs.submission import Submission
from scalesweep.slurm.earlier import LEFT_TO_RUN
from scalesweep.smk.campaign_args import is_odd, read_campaign, warn
from scalesweep.smk.context import ROUND, SnakemakeContext
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.preflight import Preflight
from scalesweep.state.frameworks import leave_unsupported, tell_lacking
from scalesweep.state.results_folder import check_writable
from scalesweep.state.run_state import RunState, forget_unsupported
from scalesweep.state.stock import take_stock

_log = logging.getLogger(__name__)

# For a Slurm that does not answer: a call that only plans waits so long in vain.
PATIENCE_S = 60.0


def prepare(
    configfiles: Sequence[Path],
    overrides: Mapping[str, Any],
    cluster: bool,
    dry: bool,
    verbs: Collection[str] = (RUN,),
    by_nodes: bool = False,
    batch: bool = False,
) -> tuple[SnakemakeContext, Preflight, JobRules]:
    """Read the campaign and the state of its runs.

    ``configfiles`` and ``overrides`` are Snakemake's --configfile and --config; with ``cluster``
    runs become jobs of Slurm. ``dry``: nothing is run, and nothing is written, moved or removed.
    ``verbs`` are what is asked for (``config.overrides.VERBS``). ``by_nodes``: Snakemake was told
    how many nodes runs may have at once. ``batch``: runs become jobs of another batch system.
    Broken records are set aside here, before Snakemake builds its DAG. Raises UserError.
    """
    set_up()
    options = read_options(overrides, verbs)
    only_reports = set(verbs) == {REPORT}
    path = _campaign_file(configfiles, options)
    repeats = read_campaign(path, options, cluster, write=not dry)
    campaign = repeats.campaign
    runs = campaign.unique_runs()
    states = take_stock(campaign, runs, not dry, not dry)
    odd = {i: state for i, state in states.items() if is_odd(state)}
    if "retry" in options:
        if not dry:
            forget_unsupported(campaign.runs_folder, runs)
        again = {
            i: RunState(Status.NEW) if s.status == Status.UNSUPPORTED else s
            for i, s in states.items()
        }
        states = leave_unsupported(campaign.site, runs, again)
    warn(campaign, runs, odd, dry)
    if RUN in verbs:  # a plan says it in its own lines
        for line in tell_lacking(campaign.site, runs, states):
            _log.warning("%s", line)
    submission = Submission(campaign, states, runs) if cluster else None
    context = SnakemakeContext(
        campaign,
        states,
        options,
        runs,
        submission=submission,
        batch=batch,
        dry=dry,
        only_reports=only_reports,
        repeats=repeats,
        round=os.environ.get(ROUND, ""),
    )
    if context.awaited and not dry:
        check_writable(campaign.results)  # Snakemake would list its outputs as protected
    if submission and context.awaited:
        context = _with_past(context, submission)
    preflight = Preflight(context)
    jobs = JobRules(context, preflight, by_nodes and bool(campaign.site.slurm))
    jobs.mend_data()
    try:
        context.note_new_state()
    except OSError as error:
        where = error.filename or campaign.results  # a write to an open file names none
        raise UserError(f"{where}: cannot be written: {error.strerror}") from None
    return context, preflight, jobs


def _with_past(context: SnakemakeContext, submission: Submission) -> SnakemakeContext:
    """What earlier Snakemake calls have left: jobs in the queue, and jobs that ended unseen."""
    try:
        submission.find_live(PATIENCE_S)
    except UserError as error:
        submission.blind = str(error)  # reported when jobs are to be submitted; a plan does without
        return context
    if submission.live:
        jobs = counted(len(submission.live), "run")
        _log.info("%s left out: jobs of an earlier call; %s", jobs, LEFT_TO_RUN)
    if not context.dry and submission.settle_past(context.pending):
        states = take_stock(context.campaign, context.runs)
        submission.states = states
        return replace(context, states=states)
    return context


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
