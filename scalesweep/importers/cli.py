"""What imports of all kinds share: arguments, records, the campaign and its report."""

import argparse
import itertools
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from scalesweep.config.site import load_site
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.importers import COSMOFLOW, LOGS, PROFILES, TABLE, detect_logs
from scalesweep.importers.doubtful_runs import doubtful
from scalesweep.importers.imported_run import ImportedRun, Item, Refusal, shown
from scalesweep.importers.rank_map import read_ranks
from scalesweep.importers.refusal_list import COPY, NOT_READ, REFUSED, RefusalList
from scalesweep.importers.which_importer import hint
from scalesweep.importers.write_campaign import (
    Rules,
    campaign_of,
    former_rules,
    write_campaign,
)
from scalesweep.importers.write_records import RecordStore, Written, write_runs
from scalesweep.smk.campaign_args import check_path
from scalesweep.smk.report_command import report_command
from scalesweep.state.results_folder import claim_folder

# How the runs of each benchmark become experiments, whichever importer is called.
RULES: Mapping[str, Rules] = detect_logs.RULES
CAMPAIGN = "campaign.yaml"
# The options that only some kinds of sources need.
_READ_BY = {
    "map": (TABLE,), "test": (LOGS,), "reader": (LOGS,),
    "benchmark": (PROFILES,), "window": (PROFILES,), "ranks": (LOGS, PROFILES, COSMOFLOW),
}  # fmt: skip
_log = logging.getLogger(__name__)


def check_arguments(args: argparse.Namespace, kind: str) -> None:
    """Check the arguments of ``scalesweep import`` for a source of this kind.

    ``args.ranks`` becomes a RankMap, or None. Raises UserError for an option that this kind does
    not read, an unknown site, a number of ranks that is none, and a results folder that is not ours
    or holds the imports of another site.
    """
    for option, readers in _READ_BY.items():
        if getattr(args, option) and kind not in readers:
            raise UserError(
                f"--{option}: {args.source} is read as {kind}, which does not need it; read by: "
                f"{', '.join(f'--as {reader}' for reader in readers)}"
            )
    load_site(args.site, "--site")
    args.ranks = read_ranks(args.ranks)
    check_path("--results", args.results)
    claim_folder(Path(args.results), "--results", write=False)
    campaign = Path(args.results) / CAMPAIGN
    if campaign.is_file():
        there = load_yaml(campaign)
        site = there.get("site") if isinstance(there, dict) else None
        if site not in (None, args.site):
            raise UserError(
                f"{campaign}: holds the imports of site {site}; name that site, or another folder: "
                f"--site {args.site} --results FOLDER"
            )


def claim(args: argparse.Namespace) -> None:
    """Make the results folder, once there is something to write."""
    claim_folder(Path(args.results), "--results")


def _noting_warm_up(items: Iterable[Item], lines: set[int]) -> Iterator[Item]:
    """The same items; ``lines`` gets how many lines of progress each log had before steady ones."""
    for item in items:
        if isinstance(item, ImportedRun) and (warm_up := item.notes.get("warm_up")):
            lines.add(warm_up["lines"])
        yield item


def _claiming(items: Iterable[Item], args: argparse.Namespace) -> Iterator[Item]:
    """The same items; the results folder is there once a run comes."""
    for item in items:
        if isinstance(item, ImportedRun):
            claim(args)
        yield item


def deliver(
    args: argparse.Namespace,
    kind: str,
    runs: Iterable[Item],
    refusals: Sequence[Refusal],
    rules: Mapping[str, Rules],
    description: str,
) -> None:
    """Write records of the runs, a campaign of all imports of the site and its report; with
    ``args.history`` that call keeps them there.

    ``args.measured``: the commit of all of them (MeasuredCommit), or None.
    ``refusals`` are those of the reading that ``runs`` does not yield. ``description`` is of the
    campaign if it has no runs but of ``rules``. Prints what came of it: refusals leave the rest as
    it is. Raises UserError if nothing could be imported or the report fails.
    """
    source, results = Path(args.source), Path(args.results)
    if args.measured is not None:
        runs = map(args.measured.noted, runs)
    startable = load_site(args.site).launch is not None
    store = RecordStore(results / "runs" / args.site, startable)
    if store.unreadable:
        _log.warning(
            "%d imported runs of another version are left out, import them again: %s",
            len(store.unreadable),
            ", ".join(store.unreadable[:3]),
        )
    imported = 0
    warm_up: set[int] = set()
    unfinished = 0
    refused = RefusalList(results, source)
    claimed = _claiming(_noting_warm_up(runs, warm_up), args)
    for item in itertools.chain(refusals, write_runs(claimed, store)):
        if isinstance(item, Written):
            imported += 1
            unfinished += bool(item.unfinished)
        else:
            refused.add(item)
    for line in refused.lines():
        print(line, file=sys.stderr)
    copies = refused.count(COPY)
    also = f", copies: {copies}" if copies else ""
    print(f"imported: {imported} runs, refused: {refused.count(REFUSED)}{also}")
    if warm_up:
        least, most = min(warm_up), max(warm_up)
        each = f"{most}" if least == most else f"{least} to {most}"
        print(f"left out as warm-up: the first {each} lines of progress of each start")
    if unfinished:
        print(f"unfinished: {unfinished} runs, which count in no mean")
    where = hint(source, kind) if refused.count(NOT_READ) or not imported else ""
    if not imported:
        if not refused.count(REFUSED):
            raise UserError(f"{shown(source)}: holds nothing that can be read as {kind}{where}")
        raise UserError(f"{shown(source)}: no run could be imported{where}")
    refused.write()
    if refused.new:
        print(f"what was not imported: {refused.path}")
    if where:
        print(where.removeprefix("; "))
    _write_campaign(args, store.runs, refused, {**RULES, **rules}, description, rules)


def _write_campaign(
    args: argparse.Namespace,
    runs: Sequence[Written],
    refused: RefusalList,
    rules: Mapping[str, Rules],
    description: str,
    own: Mapping[str, Rules],
) -> None:
    """Write the campaign of all imports of a site, and, with ``args.report``, its report."""
    if not all(run.benchmark.name in own for run in runs):
        description = "Published results, imported."
    doubts = doubtful(runs)
    for doubt in doubts:
        _log.warning("%s", doubt)
    campaign = Path(args.results) / CAMPAIGN
    former = former_rules(load_yaml(campaign), runs) if campaign.is_file() else {}
    content = campaign_of(runs, {**former, **rules}, description, args.site, args.results)
    if refused.entries or doubts:
        content["imported"] = {
            "list": str(refused.path), "refused": refused.entries, "doubts": doubts
        }  # fmt: skip
    write_campaign(content, campaign)
    print(f"campaign: {campaign}")
    if not args.report:
        return
    options = {"history": args.history, "baseline": args.baseline}
    named = {key: text for key, text in options.items() if text}
    command = report_command(campaign, args.site, args.results, named)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"the report failed: {done.stderr[-500:] or done.stdout[-500:]}")
    print(f"report: {Path(args.results) / 'report.html'}")
