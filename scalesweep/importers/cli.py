"""What imports of all kinds share: records, the campaign and its report."""

import argparse
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from scalesweep.config.site import load_site
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed
from scalesweep.core.record import last_lines
from scalesweep.core.visible import visible
from scalesweep.importers import detect_logs
from scalesweep.importers.imported_run import COPY, REFUSED, ImportedRun, Item
from scalesweep.importers.refusal_list import RefusalList
from scalesweep.importers.write_campaign import (
    Rules,
    campaign_of,
    doubtful,
    former_rules,
    write_campaign,
)
from scalesweep.importers.write_records import RecordStore, Written, write_runs
from scalesweep.smk.snakemake_facts import report_command
from scalesweep.state.results_folder import claim_folder

CAMPAIGN = "campaign.yaml"
_log = logging.getLogger(__name__)


def deliver(
    args: argparse.Namespace, kind: str, items: Iterable[Item], rules: Mapping[str, Rules]
) -> None:
    """Write records of the runs, a campaign of all imports of the site and its report; with
    ``args.history`` that call keeps them there.

    ``args.measured``: the commit of all of them (MeasuredCommit), or None. ``rules``: how the runs
    of benchmarks become experiments, besides those of logs. Prints what came of it: refusals leave
    the rest as it is. Raises UserError if nothing could be imported or the report fails.
    """
    source, results = Path(args.source), Path(args.results)
    startable = load_site(args.site).launch is not None
    store = RecordStore(results / "runs" / args.site, startable)
    refused = RefusalList(results, source)
    written: list[Written] = []
    for item in write_runs(_noted(items, args), store):
        if isinstance(item, Written):
            written.append(item)
        else:
            refused.add(item)
    for line in refused.lines():
        print(line, file=sys.stderr)
    copies = refused.count(COPY)
    also = f", copies: {copies}" if copies else ""
    print(f"imported: {len(written)} runs, refused: {refused.count(REFUSED)}{also}")
    files, now = {run.file for run in written}, {run.digest for run in written}
    if stay := sum(run.file in files and run.digest not in now for run in store.runs):
        what = counted(stay, "earlier run of these files stays", "earlier runs of these files stay")
        print(f"note: {what}; to leave them out, import into a new folder (--results)")
    starts = (run.record["notes"].get("warm_up") for run in written)
    if any(warm_up := [it["lines"] for it in starts if it]):
        each = " to ".join(map(str, sorted({min(warm_up), max(warm_up)})))
        print(f"left out as warm-up: the first {each} lines of progress of each start")
    if whys := [run.unfinished for run in written if run.unfinished]:
        said = listed([f"{why} ({n:,})" for why, n in Counter(whys).most_common()])
        print(f"failed or unfinished, in no mean: {counted(len(whys), 'run')}: {said}")
    if not written:
        what = "no run could be imported"
        if not refused.count(REFUSED):
            what = f"holds nothing that can be read as {kind}; without --as, import finds out"
        raise UserError(f"{source}: {what}")
    refused.write()
    if refused.new:
        print(f"what was not imported: {refused.path}")
    _write_campaign(args, store.runs, refused, rules)


def _noted(items: Iterable[Item], args: argparse.Namespace) -> Iterator[Item]:
    """The same items, runs with the commit that was measured; the results folder is there once a
    run comes."""
    for item in items:
        if isinstance(item, ImportedRun):
            claim_folder(Path(args.results), "--results")
            yield args.measured.noted(item) if args.measured else item
        else:
            yield item


def _write_campaign(
    args: argparse.Namespace,
    runs: Sequence[Written],
    refused: RefusalList,
    rules: Mapping[str, Rules],
) -> None:
    """Write the campaign of all imports of a site, and, with ``args.report``, its report."""
    doubts = doubtful(runs)
    for doubt in doubts:
        _log.warning("%s", doubt)
    results = Path(args.results)
    campaign = results / CAMPAIGN
    former = former_rules(load_yaml(campaign), runs) if campaign.is_file() else {}
    known = {**former, **detect_logs.RULES, **rules}
    content = campaign_of(runs, known, args.site, args.results)
    if refused.entries or doubts:
        content["imported"] = {
            "list": str(refused.path), "refused": refused.entries, "doubts": doubts
        }  # fmt: skip
    write_campaign(content, campaign)
    print(f"campaign: {campaign}")
    if not args.report:
        return
    options = {"history": args.history, "baseline": args.baseline}
    command = report_command(campaign, args.site, args.results, options)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the report failed: {why_failed(done.stderr, results / 'logs')}")
    # What the first screen says, an experiment a line.
    said = (results / "logs" / "report.log").read_text()
    print(f"{visible(said)}report: {results / 'report.html'}")
    if any(e.get("scaling", "none") != "none" for e in content["experiments"].values()):
        print(f"predict other counts: scalesweep predict {campaign} --ranks N")


def why_failed(said: str, logs: Path) -> str:
    """Why a report failed: what Snakemake prints behind its first line, or the end of a log."""
    if printed := said.partition("\n")[2].strip():
        return printed
    # A step that crashed ends with its log, the newest.
    log = max(logs.glob("*.log"), key=lambda path: path.stat().st_mtime)
    return f"{last_lines(log)[-1]} ({log})"
