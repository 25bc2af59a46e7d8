"""Measure a command over a grid without writing YAML first.

Writes campaign, site and benchmark into a folder, as one would write them by hand, and runs them:
the same line again runs only what failed or is new.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from scalesweep.commands.study import check_new, write_rules
from scalesweep.compute.external_program import WALL_TIME
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, write_atomic
from scalesweep.core.formatting import number
from scalesweep.core.paths import BENCHMARKS, RESOURCES

EXPERIMENT = "sweep"
NOTE = ".sweep.json"  # command and digests of the files that were written
_PLACE = re.compile(r"(?<![{$])\{([A-Za-z_]\w*)\}(?!\})")
_STAMPED = {"stamps": {"from": "stdout", "warmup": 10}}
# The type of a parameter, and a default that no later value changes: ids depend on it.
_TYPES: dict[type, tuple[str, Any]] = {
    int: ("integer", 0), float: ("number", 0), str: ("string", "")
}  # fmt: skip
# As many ranks as anybody starts on one machine: without Slurm all of them are on one node.
_ONE_NODE = 1024
_SRUN = ["srun", "-N", "{nodes}", "-n", "{ranks}", "-c", "{cpus_per_rank}"]


def run(args: argparse.Namespace) -> None:
    """Write the files, run what is pending, print the table. Exits with Snakemake's code."""
    values = {"ranks": args.ranks, **dict(args.param or ())}
    check(args, values)
    folder = Path(args.out).expanduser().absolute()
    write_sweep(args.words, files_of(args, values), folder)
    words = [sys.executable, "-m", "snakemake", *(["--profile", "slurm"] if args.slurm else [])]
    code = subprocess.run(words, cwd=folder, check=False).returncode
    results = folder / "results"
    if (results / "tables" / EXPERIMENT / "points.csv").is_file():
        print(f"\n{shown_table(args, values, results / 'tables' / EXPERIMENT)}")
        print(f"report: {results / 'report.html'}\nedit and run again in {folder}: snakemake")
    sys.exit(code)


def check(args: argparse.Namespace, values: Mapping[str, Sequence[Any]]) -> None:
    """Raise UserError for a line whose parts do not go together. ``values``: of ranks and of each
    parameter, in their order."""
    if not args.words:
        _refuse("no command; put it after `--`, as in `-- ./app -n {ranks}`")
    first, used = args.words[0], places(args.words)
    for name in sorted(used - values.keys()):
        _refuse(f"{{{name}}} in the command: no value; give --param {name}=VALUE,VALUE")
    for name in sorted(values.keys() - used):
        if name != "ranks" or (len(values["ranks"]) > 1 and not args.slurm):
            _refuse(
                f"{name}: the command does not use it; write {{{name}}} where its value belongs"
            )
    allowed = [name for name, of in values.items() if isinstance(of[0], int)]
    if args.scale not in allowed:
        _refuse(f"--scale {args.scale}: is no integer parameter; allowed: {', '.join(allowed)}")
    if not (args.slurm or places([first]) or shutil.which(first)):
        quoted = "; leave out the quotes around the command" if " " in first else ""
        _refuse(f"{first}: no such program{quoted}")
    if args.metric and args.stamps:
        _refuse("--metric and --stamps: the stamps are the metrics; keep one")


def places(command: Sequence[str]) -> set[str]:
    """What the braces of a command name."""
    return {name for word in command for name in _PLACE.findall(word)}


def files_of(
    args: argparse.Namespace, values: Mapping[str, Sequence[Any]]
) -> dict[str, dict[str, Any]]:
    """The content of campaign, site and benchmark, by their paths in the folder."""
    # The last word that is a file, else the first; names of shipped benchmarks are taken.
    program = Path([args.words[0], *(word for word in args.words if Path(word).is_file())][-1])
    name = re.sub(r"[^a-z0-9]+", "_", program.stem.lower()).strip("_")
    if not re.match("[a-z]", name) or (BENCHMARKS / name).exists():
        name = f"my_{name}".rstrip("_")
    experiment = {
        "benchmark": name,
        "scaling": args.scaling if len(values[args.scale]) > 1 else "none",
        **({"scale": args.scale} if args.scale != "ranks" else {}),
        "axes": {axis: list(of) for axis, of in values.items()},
        **({"fixed": {"ranks_per_node": args.ranks_per_node}} if args.slurm else {}),
        "repeats": args.repeats,
    }
    site: dict[str, Any] = {"site": "here", "nodes": 1, "launch": {"single": [], "multi": []}}
    if args.slurm:
        site |= {"nodes": -(-max(args.ranks) // args.ranks_per_node), "slurm": {}}
        if "ranks" not in places(args.words):
            site["launch"] = {"single": _SRUN, "multi": _SRUN}
    else:
        site["oversubscribe"] = True
    experiments = {EXPERIMENT: experiment}
    return {
        "config/config.yaml": {"campaign": EXPERIMENT, "site": "here", "experiments": experiments},
        "config/sites/here.yaml": site,
        f"benchmarks/{name}/benchmark.yaml": {"name": name, **_benchmark(args, values)},
    }


def _benchmark(args: argparse.Namespace, values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """What benchmark.yaml says beside the name."""
    count = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}
    parameters: dict[str, Any] = {
        "ranks": {**count, "doc": "Processes."},
        "ranks_per_node": {**count, "default": _ONE_NODE, "doc": "Processes on a node."},
    }
    for name, of in values.items():
        if name != "ranks":
            kind, default = _TYPES[type(of[0])]
            doc = f"{name} of the command."
            parameters[name] = {"type": kind, "default": default, "doc": doc}
    # The program starts in the study's folder: the command is meant for the caller's.
    files = {it for it in args.words if {"/", "."} & set(it) and Path(it).is_file()}
    words = [str(Path(word).absolute()) if word in files else word for word in args.words]
    return {
        "version": 1,
        "summary": shlex.join(args.words),
        "parameters": parameters,
        "command": ["env", f"--chdir={Path.cwd()}", *words],
        "result": _STAMPED
        if args.stamps
        else {"extract": args.metric}
        if args.metric
        else WALL_TIME,
    }


def write_sweep(
    command: Sequence[str], files: Mapping[str, Mapping[str, Any]], folder: Path
) -> None:
    """Write campaign, site and benchmark; raises UserError for files that somebody edited, and for
    a folder of another command, whose runs would count as this one's."""
    note = folder / NOTE
    if note.is_file():
        past = json.loads(note.read_text())
        measured = next((folder / "results" / "runs").glob("*/*/record.json"), None)
        if past["command"] != command and measured:
            _refuse(
                f"--out {folder}: has runs of `{shlex.join(past['command'])}`; name another folder"
            )
        for path, digest in past["files"].items():
            if not (folder / path).is_file() or digest_of((folder / path).read_text()) != digest:
                _refuse(
                    f"{folder / path}: was edited; run `scalesweep run` in {folder}, or name "
                    "another folder with --out"
                )
    else:
        check_new(folder)
    write_rules(folder)
    shutil.copy(RESOURCES / "spans" / "scalesweep_spans.py", folder)
    digests = {}
    for path, content in files.items():
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, text)
        digests[path] = digest_of(text)
    write_atomic(note, json.dumps({"command": command, "files": digests}))


def shown_table(args: argparse.Namespace, values: Mapping[str, Sequence[Any]], tables: Path) -> str:
    """A line for each point: its values, what was measured with its 95 % interval, how it scales;
    without columns that are empty everywhere."""
    import pandas as pd

    scaled = tables / "scaling.csv"
    rows = pd.read_csv(scaled if scaled.is_file() else tables / "points.csv")
    metric, unit = ("samples_per_second", "samples/s") if args.stamps else (WALL_TIME, "s")
    if args.metric:
        metric, unit = args.metric[0]["metric"], args.metric[0]["unit"]
    columns = {name: name for name, of in values.items() if len(of) > 1 or name == args.scale}
    columns |= {"repeats": "repeats", f"{metric}_mean_run": f"{metric} {unit}"}
    stats = {"low": "95 % from", "high": "to", "speedup": "speedup", "eff": "efficiency"}
    columns |= {f"{metric}_{stat}_run": word for stat, word in stats.items()}
    shown = rows.reindex(columns=list(columns)).dropna(axis="columns", how="all")
    return shown.rename(columns=columns).to_string(index=False, float_format=number, na_rep="")


def _refuse(text: str) -> NoReturn:
    raise UserError(f"scalesweep sweep: {text}")
