"""Re-read the logs of external programs where the patterns of their benchmark have changed."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.core.errors import UserError
from scalesweep.planning.reextract import MARKERS, reread, stale_runs
from scalesweep.planning.run_state import scan
from scalesweep.smk.campaign_args import add_campaign, campaign_of
from scalesweep.smk.cli import run_main

SHOWN = 10


def main() -> None:
    """Write new records, or failures where the new patterns match nothing; runs nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_campaign(parser)
    args = parser.parse_args()
    campaign = campaign_of(args)
    runs = campaign.unique_runs()
    failed: list[str] = []
    hindered: list[str] = []
    stale = stale_runs(runs, scan(campaign.runs_folder, runs))
    for marker in (campaign.results / MARKERS).glob("*"):
        marker.unlink()
    for run_id, extract in stale.items():
        try:
            why = reread(campaign.runs_folder / run_id, extract)
            failed += [] if why is None else [f"{run_id}: {why}"]
        except (UserError, OSError) as error:
            hindered.append(f"{run_id}: {error}")
    for line in (failed + hindered)[:SHOWN]:
        print(f"failed: {line}")
    print(f"logs of {len(stale)} run(s) read again, {len(failed)} failed; nothing was run")
    if failed:
        print("they are not run again for that: fix the patterns, or delete a run's failure.json")
    if hindered:
        raise UserError(f"{len(hindered)} run(s) could not be read again, see above")


if __name__ == "__main__":
    run_main(main)
