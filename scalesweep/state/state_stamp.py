"""The stamp of a campaign's state on disk: what plan, tables and report were last made of."""

from collections.abc import Mapping
from pathlib import Path

from scalesweep.config.campaign import Campaign
from scalesweep.core.files import content_digest, digest_of
from scalesweep.core.stamps import remove_stamp
from scalesweep.state.run_state import RunState, lines_of, other_sites

STATES_FOLDER = ".state"  # in the results folder


def state_digest(campaign: Campaign, states: Mapping[str, RunState]) -> str:
    """Digest of all that tables and report are made from: the campaign and every run's files.

    Equal digests mean that nothing downstream has to be made again.
    """
    # As one text: as lists of strings, 100,000 runs take four times as long.
    here = content_digest("\n".join(lines_of(states)).encode())
    # A folder's time changes with every run that begins in it.
    elsewhere = [[path.name, path.stat().st_mtime_ns] for path in other_sites(campaign.runs_folder)]
    return digest_of([campaign.digest, here, elsewhere])


def state_file(campaign: Campaign, digest: str) -> Path:
    """Stamp that exists while plan, tables and report are of the state ``digest``."""
    return campaign.results / STATES_FOLDER / digest


def stamp_state(campaign: Campaign, states: Mapping[str, RunState]) -> None:
    """Leave the stamp of this state, and of no other."""
    stamp = state_file(campaign, state_digest(campaign, states))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    for old in stamp.parent.iterdir():
        # Snakemake still asks for the others.
        if old != stamp and not old.name.startswith(("adopted-", "look-")):
            remove_stamp(old)
    stamp.touch()
