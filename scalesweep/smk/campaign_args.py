"""The campaign that a call is about: one way to find and read it, for Snakemake and commands."""

import argparse
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.adaptive.policy import RunPlan, plan_runs
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.config.study import file_names, named_file, shown, study_folder
from scalesweep.core.errors import UserError
from scalesweep.core.paths import CAMPAIGNS, REPO
from scalesweep.slurm.commands import leave_job
from scalesweep.state.results_folder import claim_folder
from scalesweep.state.run_state import RunState
from scalesweep.state.stock import Runs, take_stock, tell_set_aside, tell_stale, untrusted

_log = logging.getLogger(__name__)

OWN_CAMPAIGNS = Path("config", "campaigns")
DEFAULT_CAMPAIGN = Path("config", "config.yaml")
# How settings of a call are typed, before their names.
CONFIG, OPTION = "--config ", "--"


def find_campaign(name: str) -> Path:
    """The campaign ``<name>.yaml`` below ``config/campaigns``. Raises UserError."""
    files = file_names(OWN_CAMPAIGNS, CAMPAIGNS, "**/*.yaml")
    return named_file("campaign", name, files, "config/campaigns")


def campaign_file(named: str | None, results: str | None = None) -> Path:
    """The file of a campaign that is named by its path or name; else that of an import in the
    folder ``results``, the study's ``config/config.yaml``, or the demo."""
    if named:
        return shown(campaign_path(named) or find_campaign(named))
    files = [(study_folder() or REPO) / DEFAULT_CAMPAIGN, REPO / DEFAULT_CAMPAIGN]
    if results:
        files.insert(0, Path(results, "campaign.yaml"))
    return shown(next((file for file in files if file.is_file()), files[-1]))


def campaign_path(named: str) -> Path | None:
    """The file that a text names: in the results folder of an import, or by its path."""
    if (imported := Path(named, "campaign.yaml")).is_file():
        return imported
    return Path(named) if "/" in named or named.endswith((".yaml", ".yml")) else None


def plan_of(campaign: str) -> RunPlan:
    """What is planned so far of the campaign that ``SnakemakeContext.campaign_arguments`` names to
    the scripts of rules. Raises UserError."""
    path, options = json.loads(campaign)
    return plan_runs(_load(Path(path), options))


def open_campaign(args: argparse.Namespace, write: bool = True, tell: bool = False) -> Campaign:
    """The campaign that the arguments of a command of ``scalesweep`` name, with the repeats planned
    so far.

    ``write``: the results folder will be written to. ``tell``: warn of runs that are in no table.
    Raises UserError.
    """
    campaign = open_plan(args, write).campaign
    if tell:
        runs = campaign.unique_runs()
        warn(campaign, runs, take_stock(campaign, runs))
    return campaign


def open_plan(args: argparse.Namespace, write: bool = False) -> RunPlan:
    """The same with what is planned so far; the folder is not written to. Raises UserError."""
    options = {**vars(args), "profile": getattr(args, "profiler", None)}
    in_slurm = Path(getattr(args, "profile", None) or "").name == "slurm"  # or a path to it
    path = campaign_file(args.campaign, options["results"])
    if not args.campaign and path.is_absolute():  # none is here
        _log.warning("no campaign is named, and none is here: this is about %s", path)
    return read_campaign(path, options, in_slurm, write, OPTION)


def read_campaign(
    path: Path, options: Mapping[str, str | None], in_slurm: bool, write: bool, prefix: str = CONFIG
) -> RunPlan:
    """Read a campaign, and make or check its results folder, as Snakemake and every command do.

    ``options``: site, results, profile, history and baseline, where they are given; ``prefix`` is
    how they were typed. ``in_slurm``: runs are jobs. ``write``: the folder may be marked as ours.
    Raises UserError.
    """
    if in_slurm:
        leave_job()
    campaign = _load(path, options, in_slurm)
    keys = ("results", "history")
    where = {key: f"{prefix}{key}" if options.get(key) else f"{path}: {key}" for key in keys}
    claim_results(campaign, options, where["results"], write)
    if campaign.history:
        if campaign.history.folder.resolve() == campaign.results.resolve():  # both have tables
            raise UserError(f"{where['history']}: it is the results folder; name one of its own")
        # Made when the first session is kept.
        claim_folder(campaign.history.folder, where["history"], write=False)
    elif options.get("baseline"):
        raise UserError(
            f"{prefix}baseline: {path} names no history, which it is for; add {prefix}history"
        )
    if in_slurm and campaign.site.slurm is None:
        site = f"{prefix}site{' ' if prefix == OPTION else '='}NAME"
        raise UserError(
            f"{path}: --profile slurm, but {campaign.site.file} has no 'slurm' section; "
            f"name another site with {site}, or leave out the profile"
        )
    return plan_runs(campaign)


def claim_results(
    campaign: Campaign,
    options: Mapping[str, str | None],
    where: str = "results",
    write: bool = True,
) -> None:
    """Take the results folder for a campaign, or only look whether it may be taken.

    ``options``: of the call; ``where``: what named the folder. Raises UserError.
    """
    named = options.get("results") or campaign.results != Path("results")
    claim_folder(campaign.results, where, write, None if named else campaign.file)


def _load(path: Path, options: Mapping[str, Any], in_slurm: bool = False) -> Campaign:
    own = {key: options.get(key) for key in ("site", "results", "profile", "history", "baseline")}
    return load_campaign(path, cluster=in_slurm, **own)


def warn(campaign: Campaign, runs: Runs, states: Mapping[str, RunState]) -> None:
    """Warn of runs that are in no table though there are records."""
    for line in campaign.pathless.values():
        _log.warning("%s before it runs", line)
    if broken := untrusted(states):
        _log.warning("%s", tell_set_aside(broken, to_be=True))
    if stale := tell_stale(campaign, runs, states):
        _log.warning("%s", stale)
