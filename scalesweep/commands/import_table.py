"""Import a published table, with a map of what its columns mean, and report on it."""

import argparse
import shlex
import sys
from pathlib import Path

from scalesweep.commands.interface import parser_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.importers import TABLE, cli
from scalesweep.importers.made_benchmark import make_benchmark, parameter_entry
from scalesweep.importers.printed_utilisation import check_utilisation
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import read_table
from scalesweep.importers.table_map import PER_NODE, TableMap, load_map
from scalesweep.importers.table_printed import check_printed
from scalesweep.importers.table_runs import runs_of
from scalesweep.importers.write_campaign import Rules

SHOWN = 5  # printed values that do not come out


def run(args: argparse.Namespace) -> None:
    """Read a table into records, write a campaign of them, make its report.

    Without a map, print a draft of one. Rows that cannot be read are named and do not fail the
    others.
    """
    if not args.map:
        _print_draft(args)
        return
    table_map = load_map(Path(args.map), Path(args.source))
    runs = runs_of(table_map)
    for note in runs.notes:
        print(f"note: {note}")
    if runs.empty:
        print(f"without a value: {runs.empty} of the runs that rows and columns could hold")
    for what, checks in (
        ("efficiencies of ", check_printed(table_map, runs.runs)),
        ("", check_utilisation(table_map, runs.runs)),
    ):
        for check in checks:
            total = check.agree + len(check.others)
            print(f"printed {what}{check.metric}: {check.agree} of {total} come out")
            for line in check.others[:SHOWN]:
                print(f"warning: {line}", file=sys.stderr)
    for line in runs.impossible:
        print(f"error: {line}", file=sys.stderr)
    if not any(run.metrics for run in runs.runs):
        for refusal in runs.refusals:
            print(f"refused: {refusal.message}", file=sys.stderr)
        raise UserError(f"{args.source}: no row has a number that could be imported")
    benchmark = make_benchmark(
        Path(args.results),
        table_map.name,
        table_map.summary,
        _parameters(table_map, runs.types),
        {
            metric.name: {"definition": metric.doc, "kind": metric.kind}
            if metric.kind
            else metric.doc
            for metric in table_map.metrics.values()
        },
        table_map.scale,
        table_map.work,
        table_map.declared,
    )
    rules = Rules(
        "scaling",
        (),
        prefix=f"{benchmark.name}_",
        stated=table_map.scaling or "none",
        crossed=True,
        derive=table_map.derive,
    )
    cli.deliver(
        args,
        TABLE,
        runs.runs,
        runs.refusals,
        {benchmark.name: rules},
        f"Table {Path(args.source).name}, imported.",
    )


def _parameters(table_map: TableMap, types: dict[str, str]) -> dict[str, dict[str, object]]:
    return {
        name: parameter_entry(types[name], it.doc, it.unit, it.workload)
        for name, it in table_map.parameters.items()
        if name != PER_NODE  # every benchmark has it
    }


def _print_draft(args: argparse.Namespace) -> None:
    """Print a draft, and keep it as a file unless there is one."""
    source = Path(args.source)
    text = draft_of(read_table(source))
    print(text, end="")
    path = Path(args.results) / f"{source.stem}.map.yaml"
    if path.exists():
        print(f"# {path} exists and was left as it is.")
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
        print(f"# Written to {path}.")
    words = ["scalesweep", "import", str(source), "--map", str(path)]
    defaults = parser_of("import")
    for name in ("site", "results"):
        if getattr(args, name) != defaults.get_default(name):
            words += [f"--{name}", getattr(args, name)]
    again = shlex.join(words)
    print(f"# Check and complete it, then: {again}")
