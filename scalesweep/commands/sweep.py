"""Measure a command over a grid without writing YAML first.

Writes campaign, site and benchmark into a folder, as one would write them by hand, and runs them:
the same line again runs only what failed or is new.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from scalesweep.commands.reread import run as reread
from scalesweep.commands.snakemake_call import call
from scalesweep.commands.study import check_new, write_rules
from scalesweep.compute.external_program import WALL_TIME
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import number
from scalesweep.core.paths import RESOURCES

EXPERIMENT = "sweep"
NOTE = ".sweep.json"  # command and text of the files that were written
_PLACE = re.compile(r"(?<![{$])\{([A-Za-z_]\w*)\}(?!\})")
_TYPES = {int: "integer", float: "number", str: "string"}
# The command starts its ranks itself; on Slurm srun does, if the command does not ask for them.
_SITE: dict[str, Any] = {"site": "here", "nodes": 1, "launch": {"single": [], "multi": []}}
_SRUN = ["srun", "-N", "{nodes}", "-n", "{ranks}", "-c", "{cpus_per_rank}"]
Values = Mapping[str, Sequence[Any]]  # of ranks and of each parameter, in their order


def run(args: argparse.Namespace) -> None:
    """Write the files, run what is pending, print the table. Exits with Snakemake's code."""
    values = {"ranks": args.ranks, **dict(args.param or ())}
    check(args, values)
    folder = Path(args.out).expanduser().absolute()
    other_patterns = write_sweep(args.words, files_of(args, values), folder)
    print(f"+ cd {shlex.quote(str(folder))}", file=sys.stderr)
    os.chdir(folder)
    if other_patterns:
        reread(argparse.Namespace(campaign=None, site=None, results=None))
    words = ["snakemake", *(["--profile", "slurm"] if args.slurm else [])]
    code = call(words)
    results = folder / "results"
    if (results / "tables" / EXPERIMENT / "points.csv").is_file():
        print(f"\n{shown_table(args, values, results / 'tables' / EXPERIMENT)}")
        print(f"report: {results / 'report.html'}")
        print(f"edit and run again in {folder}: {' '.join(words)}")
    sys.exit(code)


def check(args: argparse.Namespace, values: Values) -> None:
    """Raise UserError for a line whose parts do not go together."""
    if not args.words:
        _refuse("no command; put it after `--`, as in `-- ./app -n {ranks}`")
    first, used = args.words[0], places(args.words)
    for name in sorted(used - values.keys()):
        _refuse(f"{{{name}}} in the command: no value; give --param {name}=VALUE,VALUE")
    for name in sorted(values.keys() - used):
        if name != "ranks" or (len(values["ranks"]) > 1 and not args.slurm):
            _refuse(f"{name}: is not in the command; write {{{name}}} where its value belongs")
    allowed = [name for name, of in values.items() if isinstance(of[0], int)]
    if args.scale not in allowed:
        _refuse(f"--scale {args.scale}: is no integer parameter; allowed: {', '.join(allowed)}")
    if not (args.slurm or places([first]) or shutil.which(first)):
        quoted = "; leave out the quotes around the command" if " " in first else ""
        _refuse(f"{first}: no such program{quoted}")


def places(command: Sequence[str]) -> set[str]:
    """What the braces of a command name."""
    return {name for word in command for name in _PLACE.findall(word)}


def files_of(args: argparse.Namespace, values: Values) -> dict[str, dict[str, Any]]:
    """The content of campaign, site and benchmark, by their paths in the folder."""
    # The last word that is a file, else the first.
    program = Path([args.words[0], *(word for word in args.words if Path(word).is_file())][-1])
    name = re.sub(r"^[^a-z]+|[^a-z0-9]+", "_", program.stem.lower()).strip("_") or "program"
    experiment: dict[str, Any] = {
        "benchmark": name,
        "scaling": args.scaling if len(values[args.scale]) > 1 else "none",
        "scale": args.scale,
        "axes": {axis: list(of) for axis, of in values.items()},
        "repeats": args.repeats,
        "time_limit_minutes": args.time_limit,
    }
    site = _SITE | {"oversubscribe": True}
    if args.slurm:
        experiment["fixed"] = {"ranks_per_node": args.ranks_per_node}
        site = _SITE | {"nodes": -(-max(args.ranks) // max(1, args.ranks_per_node)), "slurm": {}}
        if "ranks" not in places(args.words):
            site["launch"] = {"single": _SRUN, "multi": [*_SRUN]}
    campaign = {"campaign": EXPERIMENT, "site": "here", "experiments": {EXPERIMENT: experiment}}
    return {
        "config/config.yaml": campaign,
        "config/sites/here.yaml": site,
        f"benchmarks/{name}/benchmark.yaml": {"name": name, **_benchmark(args, values)},
    }


def _benchmark(args: argparse.Namespace, values: Values) -> dict[str, Any]:
    """What benchmark.yaml says beside the name."""
    count = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}
    parameters: dict[str, Any] = {
        "ranks": {**count, "doc": "Processes."},
        # As many as anybody starts on one machine.
        "ranks_per_node": {**count, "default": 1024, "doc": "Processes on a node."},
    }
    for name, of in values.items():
        if name != "ranks":
            kind = type(of[0])  # with a default that no later value changes: ids depend on it
            doc = f"{name} of the command."
            parameters[name] = {"type": _TYPES[kind], "default": kind(), "doc": doc}
    # The program starts in the study's folder: the command is meant for the caller's.
    files = {it for it in args.words if {"/", "."} & set(it) and Path(it).is_file()}
    words = [str(Path(word).absolute()) if word in files else word for word in args.words]
    read = {"stamps": "stdout", "warmup": 10} if args.stamps else {}
    read |= {"extract": args.metric} if args.metric else {}
    return {
        "version": 1,
        "summary": shlex.join(args.words),
        "parameters": parameters,
        "command": ["env", f"--chdir={Path.cwd()}", *words],
        "result": read or WALL_TIME,
    }


def write_sweep(command: Sequence[str], files: Mapping[str, Any], folder: Path) -> bool:
    """Write campaign, site and benchmark; returns whether another benchmark was there. Raises
    UserError for files that somebody edited, and for a folder of another command."""
    note = folder / NOTE
    past = json.loads(note.read_text()) if note.is_file() else {"files": {}}
    if note.is_file():
        measured = next((folder / "results" / "runs").glob("*/*/record.json"), None)
        if past["command"] != command and measured:
            _refuse(f"{folder}: has runs of `{shlex.join(past['command'])}`; name another folder")
        for path, text in past["files"].items():
            if (file := folder / path).is_file() and file.read_text() != text:
                _refuse(f"{file}: was edited; run `scalesweep run` in {folder}, or change --out")
    else:
        check_new(folder)
    write_rules(folder)
    shutil.copy(RESOURCES / "spans" / "scalesweep_spans.py", folder)
    texts = {}
    for path, content in files.items():
        texts[path] = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, texts[path])
    write_atomic(note, json.dumps({"command": command, "files": texts}))
    return any(texts.get(p, it) != it for p, it in past["files"].items() if "benchmark" in p)


def shown_table(args: argparse.Namespace, values: Values, tables: Path) -> str:
    """A line for each point, without columns that are empty; nothing if nothing was measured."""
    import pandas as pd

    scaled = tables / "scaling.csv"
    rows = pd.read_csv(scaled if scaled.is_file() else tables / "points.csv")
    metric = "samples_per_second" if args.stamps else WALL_TIME
    metric = args.metric[0]["metric"] if args.metric else metric
    varied = [name for name, of in values.items() if len(of) > 1 or name == args.scale]
    said = {"mean": metric, "low": "low", "high": "high", "speedup": "speedup", "eff": "efficiency"}
    stats = {f"{metric}_{stat}_run": name for stat, name in said.items()}
    shown = rows.reindex(columns=[*varied, "repeats", *stats]).dropna(axis="columns", how="all")
    if not any(rows.repeats):
        return ""
    return shown.rename(columns=stats).to_string(index=False, float_format=number, na_rep="")


def _refuse(text: str) -> NoReturn:
    raise UserError(f"scalesweep sweep: {text}")
