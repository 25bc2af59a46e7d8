"""Import results of cosmoflow-benchmark's data benchmark, and report on them."""

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scalesweep.cli import run_main
from scalesweep.errors import UserError
from scalesweep.importers.cosmoflow import read_tree
from scalesweep.importers.records import campaign_of, import_runs, write_campaign
from scalesweep.site import load_site
from scalesweep.workflow import report_command


def main() -> None:
    """Read a folder of results into records, write a campaign of them, make its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="folder with result folders in it")
    parser.add_argument("--site", required=True, help="the site to file the runs under")
    parser.add_argument("--results", required=True, help="results folder to import into")
    parser.add_argument("--snakefile", required=True, help="the workflow, for the report")
    args = parser.parse_args()
    if not args.source:
        raise UserError("import_cosmoflow: name the folder: --config source=FOLDER")
    load_site(args.site)
    runs, refusals = read_tree(Path(args.source))
    written, refused = import_runs(runs, Path(args.results) / "runs" / args.site)
    refusals += refused
    for refusal in refusals:
        print(f"refused: {refusal.file}: {refusal.reason}", file=sys.stderr)
    print(f"imported: {len(written)} runs, refused: {len(refusals)}")
    if not written:
        raise UserError(f"{args.source}: nothing could be imported")
    campaign = Path(args.results) / "campaign.yaml"
    write_campaign(campaign_of(written, "imported", args.site, args.results), campaign)
    print(f"campaign: {campaign}")
    command = report_command(args.snakefile, campaign, args.site, args.results)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the report failed: {done.stderr[-500:] or done.stdout[-500:]}")
    print(f"report: {Path(args.results) / 'report.html'}")
    if refusals:
        raise UserError(f"{len(refusals)} of {len(runs) + len(refusals) - len(refused)} refused")


if __name__ == "__main__":
    run_main(main)
