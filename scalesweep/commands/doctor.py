"""Check what a campaign needs on its site: software, launcher, Slurm, results folder, counters."""

import argparse
from collections import Counter
from collections.abc import Iterator

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.doctor import probe
from scalesweep.doctor.judge import FAILED, OK, STATES, Check, examine_sbatch, judge
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.stock import lacks_framework


def examine(campaign: Campaign, cluster: bool) -> Iterator[Check]:
    """The outcome of every check, as it comes. ``cluster``: runs would be jobs of Slurm."""
    yield examine_programs(campaign, cluster)
    if cluster:
        yield examine_sbatch(campaign)
    folder = probe.new_folder(campaign.results)
    for number, needs in enumerate(probe.needs_of(campaign)):
        part = probe.part_of(campaign, needs, folder, cluster)
        try:
            said = probe.Said([], "") if part.lacks else probe.ask(campaign, part, cluster)
        except UserError as error:
            yield Check("launcher", FAILED, str(error), f"correct slurm in {campaign.site.file}")
            return
        yield from judge(campaign.site, part, said, folder.name, first=number == 0)


def examine_programs(campaign: Campaign, cluster: bool) -> Check:
    """Whether what the campaign's runs start is there, as far as this machine can tell."""
    missing: dict[str, str] = {}
    for experiment in campaign.experiments:
        where = campaign, experiment.benchmark
        if lacks_framework(campaign.site, experiment.benchmark) is None:  # else its check says it
            for run in (*experiment.runs, *experiment.profiles):
                missing |= missing_programs(*where, run.point, not cluster, run.profile)
    if not missing:
        return Check("programs", OK, "what the campaign starts is there")
    keys = f"programs, launch or container in {campaign.site.file}, or programs in {campaign.file}"
    return Check("programs", FAILED, "; ".join(missing.values()), f"correct {keys}")


def line_of(check: Check) -> str:
    """An outcome as one line: state, name, what was found, and what to do."""
    mend = f"; to do: {check.mend}" if check.mend else ""
    return f"{check.state:8} {check.name}: {check.detail}{mend}".replace("\n", " ")


def run(args: argparse.Namespace) -> None:
    """Print a line for each check as it comes; raises UserError if any has failed."""
    campaign, in_slurm = open_campaign(args), args.profile is not None
    site = campaign.site
    if site.launch is None:
        raise UserError(f"{site.file}: has no 'launch': nothing is started there")
    how = "runs are jobs of Slurm" if in_slurm else "runs start on this machine"
    print(f"doctor: campaign {campaign.name} on site {site.name} ({site.file}); {how}", flush=True)
    counts: Counter[str] = Counter()
    for check in examine(campaign, in_slurm):
        print(line_of(check), flush=True)
        counts[check.state] += 1
    tally = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    if counts[FAILED]:
        raise UserError(f"doctor: {tally} on site {site.name}")
    print(f"doctor: {tally}")
