"""Import a published table, with a map of what its columns mean, and report on it."""

import argparse
import shlex
from pathlib import Path

from scalesweep.commands.interface import parser_of
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.importers import TABLE, cli
from scalesweep.importers.made_benchmark import make_benchmark, parameter_entry
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import read_table
from scalesweep.importers.table_map import PER_NODE, TableMap, load_map
from scalesweep.importers.table_runs import runs_of
from scalesweep.importers.write_campaign import Rules


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
    if not any(run.metrics for run in runs.runs):
        why = f": {runs.refusals[0].message}" if runs.refusals else ""
        raise UserError(f"{args.source}: no row has a number that could be imported{why}")
    file = table_map.file
    cli.claim(args)
    benchmark = make_benchmark(
        Path(args.results),
        file.name,
        file.summary or f"Published table {Path(args.source).name}.",
        parameters_of(table_map, runs.types),
        {
            name: {"definition": it.doc, "kind": it.kind} if it.kind else it.doc
            for name, it in file.metrics.items()
        },
        file.scale,
        file.work.model_dump() if file.work else None,
        table_map.declared,
    )
    derive = {name: expression.text for name, expression in table_map.derive.items()}
    rules = Rules(stated=file.scaling or "", derive=derive)
    what = f"Table {Path(args.source).name}, imported."
    cli.deliver(args, TABLE, runs.runs, runs.refusals, {benchmark.name: rules}, what)


def parameters_of(table_map: TableMap, types: dict[str, str]) -> dict[str, dict[str, object]]:
    """The parameters of the benchmark that a table is of, as benchmark.yaml has them."""
    file = table_map.file
    entries = {
        name: parameter_entry(types[name], it.doc or f"{name} of the table.", it.unit, it.workload)
        for name, it in file.parameters.items()
    }
    if side := file.side_by_side:
        name = side.parameter
        entries[name] = parameter_entry(types[name], side.doc, side.unit, side.workload)
    return {name: entry for name, entry in entries.items() if name != PER_NODE}


def _print_draft(args: argparse.Namespace) -> None:
    """Print a draft, and keep it as a file unless there is one."""
    source = Path(args.source)
    text = draft_of(read_table(source)).text(source.name)
    print(text, end="")
    cli.claim(args)
    path = Path(args.results) / f"{source.stem}.map.yaml"
    if path.exists():
        print(f"# {path} exists and was left as it is.")
    else:
        write_atomic(path, text)
        print(f"# Written to {path}.")
    words = ["scalesweep", "import", str(source), "--map", str(path)]
    defaults = parser_of("import")
    for name in ("site", "results"):
        if getattr(args, name) != defaults.get_default(name):
            words += [f"--{name}", getattr(args, name)]
    print(f"# Check and complete it, then: {shlex.join(words)}")
