"""What happens while the Snakefile is parsed: the campaign is read, and the state of its runs."""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.config.overrides import RUN, read_options
from scalesweep.config.study import default_campaign, find_campaign, shown, study_folder
from scalesweep.core.errors import UserError
from scalesweep.core.log import set_up
from scalesweep.core.paths import REPO
from scalesweep.core.status import Status
from scalesweep.planning.repeats import plan_repeats
from scalesweep.planning.results_folder import check_writable, claim_folder
from scalesweep.planning.run_state import (
    RunState,
    beside_done,
    forget_unsupported,
)
from scalesweep.planning.stock import take_stock, tell_stale
from scalesweep.planning.submission import Submission
from scalesweep.planning.untrusted_runs import (
    newer,
    tell_runs,
    tell_set_aside,
    tell_unusable,
    untrusted,
    unusable,
)
from scalesweep.slurm.commands import leave_job
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.job_rules import JobRules
from scalesweep.smk.preflight import Preflight

_log = logging.getLogger(__name__)

# For a Slurm that does not answer: a call that only plans waits so long in vain.
PATIENCE_S = 60.0


def prepare(
    configfiles: Sequence[Path],
    overrides: Mapping[str, Any],
    cluster: bool,
    dry: bool,
    verbs: Collection[str] = (RUN,),
    forced: bool = False,
) -> tuple[SnakemakeContext, Preflight, JobRules]:
    """Read the campaign and the state of its runs.

    ``configfiles`` and ``overrides`` are Snakemake's --configfile and --config; with ``cluster``
    runs become jobs of Slurm. ``dry``: nothing is run, and nothing is written, moved or removed.
    ``verbs`` are what is asked for (``config.overrides.VERBS``). ``forced``: runs that are done may
    be measured again. Broken records are set aside here, before Snakemake builds its DAG. Raises
    UserError, also where there are records of a newer version that runs would be added to.
    """
    set_up()
    if cluster:
        leave_job()  # as Snakemake's Slurm plugin does, which forgets the cluster too
    options = read_options(overrides, verbs)
    path = _campaign_file(configfiles, options)
    campaign = load_campaign(
        path,
        options.get("site"),
        options.get("results"),
        cluster=cluster,
        profile=options.get("profile"),
        history=options.get("history"),
        baseline=options.get("baseline"),
    )
    _check_names(campaign, cluster)
    named = "--config results" if "results" in options else f"{path}: results"
    claim_folder(campaign.results, named, write=not dry)
    if campaign.history:
        # Made when the first session is kept.
        claim_folder(campaign.history.folder, f"{path}: history", write=False)
    repeats = plan_repeats(campaign, remember=not dry)
    campaign = repeats.campaign
    site = campaign.site
    if cluster and site.slurm is None:
        raise UserError(
            f"{path}: --profile slurm, but {site.file} has no 'slurm' section; "
            "name another site with --config site=NAME, or leave out the profile"
        )
    runs = campaign.unique_runs()
    full = options.get("check") == "full"
    states = take_stock(campaign, runs, not dry, not dry, verify=full, afresh=full)
    odd = {
        i: s for i, s in beside_done(states).items() if s.status in (Status.FAILED, Status.STALE)
    }
    _refuse_newer(
        campaign, odd, only_warn=set(verbs) == {"report"} or options.get("pending") == "ignore"
    )
    if "retry" in options:
        if not dry:
            forget_unsupported(campaign.runs_folder, runs)
        states = {
            i: RunState(Status.NEW) if s.status == Status.UNSUPPORTED else s
            for i, s in states.items()
        }
    if broken := untrusted(odd):
        _log.warning("%s", tell_set_aside(broken, dry))
    if useless := unusable(odd):
        _log.warning("%s", tell_unusable(useless))
    if stale := tell_stale(campaign, runs, odd):
        _log.warning("%s", stale)
    submission = Submission(campaign, states, runs) if cluster else None
    context = SnakemakeContext(
        campaign,
        states,
        options,
        runs,
        submission=submission,
        dry=dry,
        forced=forced,
        repeats=repeats,
    )
    if context.awaited and not dry:
        check_writable(campaign.results)  # Snakemake would list its outputs as protected
    if submission and context.awaited:
        context = _with_past(context, submission)
    preflight = Preflight(context)
    jobs = JobRules(context, preflight)
    jobs.mend_data()
    try:
        context.fit_markers()
        context.stamp_new_state()
    except OSError as error:
        where = error.filename or campaign.results  # a write to an open file names none
        raise UserError(f"{where}: cannot be written: {error.strerror}") from None
    return context, preflight, jobs


def _refuse_newer(campaign: Campaign, states: Mapping[str, RunState], only_warn: bool) -> None:
    """Raise UserError if there are records of a newer version, which are left as they are.

    A report of the others can be made (``only_warn``); beside them nothing is measured.
    """
    if not (found := newer(states)):
        return
    line = f"{campaign.runs_folder}: nothing was changed: {tell_runs(found)}"
    if not only_warn:
        raise UserError(f"{line}; or name another folder with --config results=FOLDER")
    _log.warning("%s", line)


def _check_names(campaign: Campaign, cluster: bool) -> None:
    """Raise UserError for a path that Snakemake, or its Slurm plugin, would not take unchanged."""
    data = Path(campaign.site.data)
    # These first: they are part of what others become.
    named: dict[str, Path | str] = {"the folder of the Snakefile": REPO}
    if cluster or study_folder() or not data.is_absolute():
        named["the working folder"] = Path.cwd()
    named |= {
        "--configfile": campaign.file,
        f"{campaign.file}: results": campaign.results,
        f"{campaign.site.file}: data": data.resolve(),
    }
    if campaign.history:
        named[f"{campaign.file}: history"] = campaign.history.folder
    for where, name in named.items():
        if found := re.search(r"[{}<>\x00-\x1f\x7f]|^-", str(name)):
            what = "start with '-'" if found[0] == "-" else f"contain {found[0]!a}"
            raise UserError(
                f"{where}: {str(name)!a}: must not {what}: the path is passed on command lines"
            )
        # The plugin puts a job's command between double quotes.
        if cluster and (found := re.search(r"[$`\\\"]", str(name))):
            raise UserError(
                f"{where}: {str(name)!a}: must not contain {found[0]} with --profile slurm"
            )


def _with_past(context: SnakemakeContext, submission: Submission) -> SnakemakeContext:
    """What earlier Snakemake calls have left: jobs in the queue, and jobs that ended unseen."""
    try:
        submission.find_live(PATIENCE_S)
    except UserError as error:
        submission.blind = str(error)  # reported when jobs are to be submitted; a plan does without
        return context
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
    if "campaign" in options:
        return shown(find_campaign(options["campaign"]))
    return shown(configfiles[0] if configfiles else default_campaign())
