"""What the scripts that import share: arguments, records, the campaign and its report."""

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import ImportedRun, Refusal
from scalesweep.importers.write_campaign import Rules, campaign_of, write_campaign
from scalesweep.importers.write_records import import_runs
from scalesweep.smk.report_command import report_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that every import takes."""
    parser.add_argument("--source", required=True, help="file or folder to import")
    parser.add_argument("--site", required=True, help="site of the imported runs")
    parser.add_argument("--results", required=True, help="results folder to import into")
    parser.add_argument(
        "--ranks", default="", help="number of ranks of runs whose logs do not state it"
    )
    parser.add_argument("--snakefile", required=True, help="the workflow, for the report")


def check_arguments(
    args: argparse.Namespace, importer: str, source: str, ranks: bool = False
) -> None:
    """Check an importer's arguments; ``source`` says what is read (FILE_OR_FOLDER).

    With ``ranks`` the number of ranks may be named (``args.ranks`` becomes an int, else None).
    Raises UserError if no source is named, the site is unknown or the number of ranks is none.
    """
    if not args.source:
        what = source.lower().replace("_", " ")
        raise UserError(f"{importer}: name the {what}: --config source={source}")
    load_site(args.site)
    if args.ranks and not ranks:
        raise UserError(f"--config ranks={args.ranks}: {importer} reads it from the results")
    if args.ranks and not re.fullmatch(r"[1-9]\d{0,6}", args.ranks, re.ASCII):
        raise UserError(f"--config ranks={args.ranks}: a whole number from 1 to 9999999")
    args.ranks = int(args.ranks) if args.ranks else None


def deliver(
    args: argparse.Namespace,
    importer: str,
    runs: Sequence[ImportedRun],
    refusals: Sequence[Refusal],
    rules: Mapping[str, Rules],
    description: str,
    benchmarks: Mapping[str, Benchmark] | None = None,
) -> list[Refusal]:
    """Write records of the runs, a campaign of them and its report; print what came of it.

    ``refusals`` are those of the reading, ``benchmarks`` those that the import made. Returns all
    refusals. Raises UserError if nothing could be imported or the report fails.
    """
    startable = load_site(args.site).launch is not None
    folder = Path(args.results) / "runs" / args.site
    written, refused = import_runs(runs, folder, startable, benchmarks)
    refused = [*refusals, *refused]
    for refusal in refused:
        print(f"refused: {refusal.message}", file=sys.stderr)
    print(f"imported: {len(written)} runs, refused: {len(refused)}")
    if not written:
        raise UserError(f"{args.source}: no run could be imported")
    campaign = Path(args.results) / "campaign.yaml"
    content = campaign_of(written, rules, description, args.site, args.results)
    write_campaign(content, campaign, importer)
    print(f"campaign: {campaign}")
    command = report_command(args.snakefile, campaign, args.site, args.results)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the report failed: {done.stderr[-500:] or done.stdout[-500:]}")
    print(f"report: {Path(args.results) / 'report.html'}")
    return refused
