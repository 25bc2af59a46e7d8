"""Read the logs of external programs again where the patterns of their benchmark have changed."""

import argparse

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.smk.campaign_args import open_campaign
from scalesweep.state.agreement import OTHER_PATTERNS
from scalesweep.state.reextract import reread
from scalesweep.state.stock import take_stock


def run(args: argparse.Namespace) -> None:
    """Write new records; a run whose logs are gone or lack a value stays as it is."""
    campaign = open_campaign(args)
    runs = campaign.unique_runs()
    failed: list[str] = []
    states = take_stock(campaign, runs).items()
    rereads = [run_id for run_id, state in states if OTHER_PATTERNS in state.detail]
    for run_id in rereads:
        extract = runs[run_id][0].benchmark.extract
        assert extract is not None
        try:
            reread(campaign.runs_folder / run_id, extract)
        except (UserError, OSError) as error:
            failed.append(f"{run_id}: {error}")
    read = len(rereads) - len(failed)
    print(f"logs of {counted(read, 'run')} read again, {len(failed)} failed; nothing was run")
    if failed:
        mend = "fix the patterns, or measure again: scalesweep run --again EXPERIMENT"
        raise UserError(*failed, f"runs that failed stay as they are: {mend}")
