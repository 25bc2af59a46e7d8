"""Read the logs of external programs again where the patterns of their benchmark have changed."""

import argparse

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.reextract import reread, runs_to_reread
from scalesweep.state.run_state import scan

SHOWN = 10


def run(args: argparse.Namespace) -> None:
    """Write new records, or failures where the new patterns match nothing; runs nothing."""
    campaign = open_campaign(args)
    runs = campaign.unique_runs()
    failed: list[str] = []
    hindered: list[str] = []
    rereads = runs_to_reread(runs, scan(campaign.runs_folder, runs))
    for run_id, extract in rereads.items():
        try:
            why = reread(campaign.runs_folder / run_id, extract)
            failed += [] if why is None else [f"{run_id}: {why}"]
        except (UserError, OSError) as error:
            hindered.append(f"{run_id}: {error}")
    for line in (failed + hindered)[:SHOWN]:
        print(f"failed: {line}")
    read = f"logs of {counted(len(rereads), 'run')} read again"
    print(f"{read}, {len(failed)} failed; nothing was run")
    if failed:
        print("they are not run again for that: fix the patterns, or delete a run's failure.json")
    if hindered:
        raise UserError(f"{counted(len(hindered), 'run')} could not be read again, see above")
