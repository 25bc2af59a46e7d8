"""Import published results, whatever they are, and report on them."""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from scalesweep.ab.commits import Repository, top_of
from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.log_patterns import load_reader
from scalesweep.config.site import load_site
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.history.page import PAGE
from scalesweep.importers import COSMOFLOW, LOGS, PROFILES, TABLE, cli, detect_logs, lines
from scalesweep.importers.collective_logs import check_test
from scalesweep.importers.cosmoflow import read_tree
from scalesweep.importers.imported_run import Item, MeasuredCommit, not_read
from scalesweep.importers.made_benchmark import make_benchmark
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.profile_runs import runs_of
from scalesweep.importers.rank_map import RankMap, read_ranks
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import read_table
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of as rows_of
from scalesweep.importers.which_importer import kind_of
from scalesweep.importers.write_campaign import Rules
from scalesweep.state.results_folder import claim_folder

# The kind of source that an option alone stands for.
_MEANS = {"map": TABLE, "test": LOGS, "reader": LOGS, "benchmark": PROFILES}
# What a kind of source gives: the items, and how the runs of benchmarks become experiments.
Found = tuple[Iterable[Item], Mapping[str, Rules]]


def run(args: argparse.Namespace) -> None:
    """Recognise the source; read it into records, write a campaign of them, make its report, and
    keep the runs in a history if one is named.

    What cannot be trusted is named and does not fail the rest. Of a table without a map a draft of
    one is printed. Raises UserError for a wrong option or folder.
    """
    alone = next((kind for option, kind in _MEANS.items() if getattr(args, option)), "")
    kind = args.kind or alone or kind_of(Path(args.source))
    if args.ranks and kind == TABLE:
        raise UserError("--ranks: is not for tables, whose map says it: ranks: {value: N}")
    load_site(args.site, "--site")
    args.ranks = read_ranks(args.ranks)
    args.measured = measured_commit(args.commit, args.repository)
    claim_folder(Path(args.results), "--results", write=False)
    campaign = Path(args.results) / cli.CAMPAIGN
    if campaign.is_file() and (site := load_yaml(campaign)["site"]) != args.site:
        raise UserError(f"{campaign}: is of site {site}; add --results FOLDER, another")
    if args.baseline and not args.history:
        raise UserError("--baseline: is of a history; add --history FOLDER")
    if args.history:
        if not args.report:
            raise UserError("--history: is written with the report; leave out --no-report")
        claim_folder(Path(args.history), "--history", write=False)
    if kind == TABLE and not args.map:
        _print_draft(Path(args.source), Path(args.results))
        return
    read = {LOGS: _logs, COSMOFLOW: _cosmoflow, PROFILES: _profiles, TABLE: _table}[kind]
    cli.deliver(args, kind, *read(args))
    if args.history:
        print(f"history: {Path(args.history) / PAGE}")


def _logs(args: argparse.Namespace) -> Found:
    reader = load_reader(Path(args.reader)) if args.reader else None
    ranks, test = args.ranks or RankMap({}), check_test(args.test)
    rules = {reader.benchmark: lines.rules_of(reader)} if reader else {}
    return detect_logs.read_items(Path(args.source), ranks, test, reader), rules


def _cosmoflow(args: argparse.Namespace) -> Found:
    runs, refusals = read_tree(Path(args.source), args.ranks)
    return [*refusals, *runs], {}


def _profiles(args: argparse.Namespace) -> Found:
    known = load_benchmark(args.benchmark, "--benchmark") if args.benchmark else None
    source = read_source(Path(args.source), args.ranks or RankMap({}))
    made = runs_of(source.profiles, Path(args.source), known)
    others = [not_read(file) for file in source.others]
    rules = {
        name: Rules() if known and name == known.name else Rules(scaling)
        for name, scaling in made.scaling.items()
    }
    return [*source.refusals, *made.refusals, *made.runs, *others], rules


def _table(args: argparse.Namespace) -> Found:
    table_map = load_map(Path(args.map), Path(args.source))
    table = rows_of(table_map)
    for note in table.notes:
        print(f"note: {note}")
    if not any(each.metrics for each in table.runs):
        why = f": {table.refusals[0].message}" if table.refusals else ""
        raise UserError(f"{args.source}: no row has a number that could be imported{why}")
    claim_folder(Path(args.results), "--results")
    name = table_map.file.name
    make_benchmark(Path(args.results), name, table.made)
    derive = {it: expression.text for it, expression in table_map.derive.items()}
    rules = {name: Rules(stated=table_map.file.scaling or "", derive=derive)}
    return [*table.refusals, *table.runs], rules


def _print_draft(source: Path, results: Path) -> None:
    """Print a draft of a map, and keep it as a file unless there is one."""
    text = draft_of(read_table(source)).text(source.name)
    print(text, end="")
    claim_folder(results, "--results")
    path = results / f"{source.stem}.map.yaml"
    if not path.exists():
        write_atomic(path, text)
    print(f"# Check and complete {path}, then add to this line: --map {path}")


def measured_commit(commit: str, repository: str) -> MeasuredCommit | None:
    """The commit that a source was measured of; None where it is not named. Raises UserError."""
    if not commit:
        return None
    if not Path(repository).is_dir() or not (top := top_of(Path(repository))):
        raise UserError(f"--repository {repository}: no git repository")
    return MeasuredCommit(Repository(top).commit(commit, "--commit"), str(top))
