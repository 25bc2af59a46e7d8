"""Check what a campaign needs on its site: software, launcher, Slurm, folders, clocks, counters."""

import argparse
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

from scalesweep.compute.doctor.checks import (
    FAILED,
    OK,
    SKIPPED,
    STATES,
    Check,
    Checks,
    Group,
    carry_out,
)
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.doctor import place, slurm
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.frameworks import lacks_framework

PROGRAMS = "programs"
FOLDER = ".doctor"  # in the results folder
OLD_S = 3600.0  # what an earlier call has left there is removed after this time
_SLURM_S = 30.0
_NAME = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def examine(campaign: Campaign, cluster: bool) -> Iterator[Check]:
    """The outcome of every check, as it comes. ``cluster``: runs would be jobs of Slurm."""
    site = campaign.site
    kept = campaign.results.absolute() / FOLDER
    for earlier in kept.glob("*"):
        if _NAME.fullmatch(earlier.name) and time.time() - earlier.stat().st_mtime > OLD_S:
            shutil.rmtree(earlier, ignore_errors=True)
    folder = kept / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    yield from carry_out(
        [
            Group((slurm.SRUN,), _SLURM_S, partial(slurm.examine_srun, site, cluster)),
            Group((PROGRAMS,), _SLURM_S, partial(examine_programs, campaign, cluster)),
            Group((slurm.SBATCH,), _SLURM_S, partial(slurm.examine_sbatch, campaign, cluster)),
            Group((slurm.AVOIDED,), _SLURM_S, partial(slurm.examine_faults, campaign, cluster)),
            Group(
                place.names_of(campaign), place.all_s(campaign),
                partial(place.examine, campaign, folder, cluster),
            ),
        ]
    )  # fmt: skip


def examine_programs(campaign: Campaign, cluster: bool) -> Checks:
    """Whether what the campaign's runs start is there, as far as this machine can tell."""
    if campaign.site.launch is None:
        yield Check(PROGRAMS, SKIPPED, "the site starts no runs")
        return
    missing: dict[str, str] = {}
    for experiment in campaign.experiments:
        if lacks_framework(campaign.site, experiment.benchmark) is not None:
            continue  # said with its mend by the check of the framework
        for point in experiment.points:
            missing |= missing_programs(campaign, experiment.benchmark, point, not cluster)
        for run in experiment.profiles:
            missing |= missing_programs(
                campaign, experiment.benchmark, run.point, not cluster, run.profile
            )
    if missing:
        yield Check(
            PROGRAMS, FAILED, "; ".join(missing.values()),
            f"correct programs or launch in {campaign.site.file}, or programs in {campaign.file}",
        )  # fmt: skip
    else:
        yield Check(PROGRAMS, OK, "what the campaign starts is there")


def line_of(check: Check) -> str:
    """An outcome as one line: state, name, what was found, and what to do."""
    mend = f"; to do: {check.mend}" if check.mend else ""
    return " ".join(f"{check.state:8} {check.name}: {check.detail}{mend}".split("\n"))


def run(args: argparse.Namespace) -> None:
    """Print a line for each check as it comes; raises UserError if any has failed."""
    campaign, in_slurm = open_campaign(args), args.profile is not None
    site = campaign.site
    if site.launch is None:
        raise UserError(f"{site.file}: has no 'launch': nothing is started there")
    how = "runs are jobs of Slurm" if in_slurm else "runs start on this machine"
    print(f"doctor: campaign {campaign.name} on site {site.name} ({site.file}); {how}", flush=True)
    begin = time.monotonic()
    counts: Counter[str] = Counter()
    for check in examine(campaign, in_slurm):
        print(line_of(check), flush=True)
        counts[check.state] += 1
    tally = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    print(f"doctor: {tally}; {time.monotonic() - begin:.0f} s")
    if counts[FAILED]:
        raise UserError(f"the doctor found {counts[FAILED]} check(s) failed on site {site.name}")
