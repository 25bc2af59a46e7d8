"""All checks of a campaign's site, at the same time."""

import secrets
import shutil
import time
from collections.abc import Iterator
from functools import partial

from scalesweep.compute.doctor.checks import Check, Group, carry_out
from scalesweep.compute.doctor.main import NAMES
from scalesweep.config.campaign import Campaign
from scalesweep.doctor import place, slurm

FOLDER = ".doctor"  # in the results folder
OLD_S = 3600.0  # what an earlier call has left there is removed after this time
_SLURM_S = 30.0


def examine(campaign: Campaign, cluster: bool) -> Iterator[Check]:
    """The outcome of every check, as it comes. ``cluster``: runs would be jobs of Slurm."""
    site = campaign.site
    kept = campaign.results.absolute() / FOLDER
    for earlier in kept.glob("*"):
        if time.time() - earlier.stat().st_mtime > OLD_S:
            shutil.rmtree(earlier, ignore_errors=True)
    folder = kept / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    yield from carry_out(
        [
            Group((slurm.SRUN,), _SLURM_S, partial(slurm.examine_srun, site, cluster)),
            Group((slurm.SBATCH,), _SLURM_S, partial(slurm.examine_sbatch, campaign, cluster)),
            Group(NAMES, place.ALL_S, partial(place.examine, campaign, folder, cluster)),
        ]
    )


def line_of(check: Check) -> str:
    """An outcome as one line: state, name, what was found, and what to do."""
    mend = f"; to do: {check.mend}" if check.mend else ""
    return " ".join(f"{check.state:8} {check.name}: {check.found}{mend}".split("\n"))
