"""Measure a command over a grid without writing YAML first.

Writes campaign, site and benchmark into a folder, as one would write them by hand, and runs them:
the same line again runs only what failed or is new.
"""

import argparse
import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLACE = re.compile(r"(?<![{$])\{([A-Za-z_]\w*)\}(?!\})")
_STAMPED = {"stamps": {"from": "stdout", "warmup": 10}}
# The type of a parameter, and a default that no later value changes: ids depend on it.
_TYPES: dict[type, tuple[str, Any]] = {
    int: ("integer", 0), float: ("number", 0), str: ("string", "")
}  # fmt: skip
# As many ranks as anybody starts on one machine: without Slurm all of them are on one node.
_ONE_NODE = 1024
_SRUN = ["srun", "-N", "{nodes}", "-n", "{ranks}", "-c", "{cpus_per_rank}"]


@dataclass(frozen=True)
class Sweep:
    """What a line asks for. ``values``: of ranks and of each parameter, in their order."""

    command: tuple[str, ...]
    values: Mapping[str, Sequence[Any]]
    result: str | Mapping[str, Any]
    scale: str
    scaling: str
    repeats: int
    slurm: bool
    ranks_per_node: int

    def files(self) -> dict[str, dict[str, Any]]:
        """The content of each file, by its path in the folder."""
        return {
            "config/config.yaml": self._campaign(),
            "config/sites/here.yaml": self._site(),
            f"benchmarks/{self.name}/benchmark.yaml": self._benchmark(),
        }

    @property
    def name(self) -> str:
        """The benchmark: the last word that is a file, else the first; shipped names are taken."""
        files = [word for word in self.command if Path(word).is_file()]
        stem = Path(files[-1] if files else self.command[0]).stem
        name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
        own = _NAME.fullmatch(name) and not (BENCHMARKS / name).exists()
        return name if own else f"my_{name}".rstrip("_")

    @property
    def main(self) -> tuple[str, str]:
        """The metric that is shown, and its unit."""
        if isinstance(self.result, str):
            return WALL_TIME, "s"
        first = self.result.get("extract", [{"metric": "samples_per_second", "unit": "samples/s"}])
        return first[0]["metric"], first[0]["unit"]

    def _campaign(self) -> dict[str, Any]:
        axes = {name: list(values) for name, values in self.values.items()}
        experiment = {
            "benchmark": self.name,
            "scaling": self.scaling,
            **({"scale": self.scale} if self.scale != "ranks" else {}),
            "axes": axes,
            **({"fixed": {"ranks_per_node": self.ranks_per_node}} if self.slurm else {}),
            "repeats": self.repeats,
        }
        return {"campaign": EXPERIMENT, "site": "here", "experiments": {EXPERIMENT: experiment}}

    def _site(self) -> dict[str, Any]:
        launch: dict[str, Any] = {"single": [], "multi": []}
        if not self.slurm:
            return {"site": "here", "nodes": 1, "oversubscribe": True, "launch": launch}
        nodes = -(-max(self.values["ranks"]) // self.ranks_per_node)
        if "ranks" not in places(self.command):
            launch = {"single": _SRUN, "multi": _SRUN}
        return {"site": "here", "nodes": nodes, "launch": launch, "slurm": {}}

    def _benchmark(self) -> dict[str, Any]:
        count = {"type": "integer", "minimum": 1, "default": 1, "unit": "ranks"}
        parameters: dict[str, Any] = {
            "ranks": {**count, "doc": "Processes."},
            "ranks_per_node": {**count, "default": _ONE_NODE, "doc": "Processes on a node."},
        }
        for name, values in self.values.items():
            if name != "ranks":
                kind, default = _TYPES[type(values[0])]
                doc = f"{name} of the command."
                parameters[name] = {"type": kind, "default": default, "doc": doc}
        # The program starts in the study's folder: the command is meant for the caller's.
        here = ["env", f"--chdir={Path.cwd()}"]
        words = [str(Path(word).absolute()) if _is_file(word) else word for word in self.command]
        return {
            "name": self.name,
            "version": 1,
            "summary": shlex.join(self.command),
            "parameters": parameters,
            "command": [*here, *words],
            "result": self.result,
        }


def places(command: Sequence[str]) -> set[str]:
    """What the braces of a command name."""
    return {name for word in command for name in _PLACE.findall(word)}


def read_sweep(args: argparse.Namespace) -> Sweep:
    """What a line asks for; raises UserError."""
    if not args.words:
        _refuse("no command; put it after `--`, as in `-- ./app -n {ranks}`")
    values = {"ranks": _counts(args.ranks), **dict(map(_parameter, args.param or ()))}
    command = tuple(args.words)
    for name in sorted(places(command) - values.keys()):
        _refuse(f"{{{name}}} in the command: no value; give --param {name}=VALUE,VALUE")
    for name in sorted(values.keys() - places(command)):
        if name != "ranks" or (len(values["ranks"]) > 1 and not args.slurm):
            _refuse(
                f"{name}: the command does not use it; write {{{name}}} where its value belongs"
            )
    allowed = [name for name, of in values.items() if isinstance(of[0], int)]
    if args.scale not in allowed:
        _refuse(f"--scale {args.scale}: is no integer parameter; allowed: {', '.join(allowed)}")
    if not (args.slurm or places(command[:1]) or shutil.which(command[0])):
        quoted = "; leave out the quotes around the command" if " " in command[0] else ""
        _refuse(f"{command[0]}: no such program{quoted}")
    alone = len(values[args.scale]) == 1
    metrics = [_metric(text) for text in args.metric or ()]
    if metrics and args.stamps:
        _refuse("--metric and --stamps: the stamps are the metrics; keep one")
    return Sweep(
        command=command,
        values=values,
        result=_STAMPED if args.stamps else {"extract": metrics} if metrics else WALL_TIME,
        scale=args.scale,
        scaling="none" if alone else args.scaling,
        repeats=_whole("--repeats", args.repeats),
        slurm=args.slurm,
        ranks_per_node=_whole("--ranks-per-node", args.ranks_per_node),
    )


def run(args: argparse.Namespace) -> None:
    """Write the files, run what is pending, print the table. Exits with Snakemake's code."""
    sweep = read_sweep(args)
    folder = Path(args.out).expanduser().absolute()
    write_sweep(sweep, folder)
    words = [sys.executable, "-m", "snakemake", *(["--profile", "slurm"] if args.slurm else [])]
    code = subprocess.run(words, cwd=folder, check=False).returncode
    results = folder / "results"
    table = results / "tables" / EXPERIMENT
    if (table / "points.csv").is_file():
        print(f"\n{shown_table(sweep, table)}")
        print(f"report: {results / 'report.html'}\nedit and run again in {folder}: snakemake")
    sys.exit(code)


def write_sweep(sweep: Sweep, folder: Path) -> None:
    """Write campaign, site and benchmark; raises UserError for files that somebody edited, and for
    a folder of another command, whose runs would count as this one's."""
    note = folder / NOTE
    if note.is_file():
        past = json.loads(note.read_text())
        measured = next((folder / "results" / "runs").glob("*/*/record.json"), None)
        if past["command"] != list(sweep.command) and measured:
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
    for path, content in sweep.files().items():
        text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=120)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, text)
        digests[path] = digest_of(text)
    write_atomic(note, json.dumps({"command": sweep.command, "files": digests}))


def shown_table(sweep: Sweep, tables: Path) -> str:
    """A line for each point: its values, what was measured with its 95 % interval, how it scales;
    without columns that are empty everywhere."""
    import pandas as pd

    scaled = tables / "scaling.csv"
    rows = pd.read_csv(scaled if scaled.is_file() else tables / "points.csv")
    metric, unit = sweep.main
    columns = {name: name for name, of in sweep.values.items() if len(of) > 1}
    columns |= {
        sweep.scale: sweep.scale,
        "repeats": "repeats",
        f"{metric}_mean_run": f"{metric} {unit}",
    }
    stats = {"low": "95 % from", "high": "to", "speedup": "speedup", "eff": "efficiency"}
    columns |= {f"{metric}_{stat}_run": word for stat, word in stats.items()}
    shown = rows.reindex(columns=list(columns)).dropna(axis="columns", how="all")
    return shown.rename(columns=columns).to_string(index=False, float_format=number, na_rep="")


def _counts(text: str) -> list[int]:
    return [_whole("--ranks", part) for part in text.split(",")]


def _whole(option: str, text: str) -> int:
    """A whole number of at least 1; raises UserError."""
    if not text.strip().isdecimal() or int(text) < 1:
        _refuse(f"{option} {text}: must be whole numbers of 1 or more")
    return int(text)


def _parameter(text: str) -> tuple[str, list[Any]]:
    """Name and values of ``NAME=VALUE,VALUE``; raises UserError."""
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or not values:
        _refuse(f"--param {text}: must be NAME=VALUE,VALUE; a name has lower-case letters, 0-9, _")
    parts = values.split(",")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, [kind(part) for part in parts]
    return name, parts


def _metric(text: str) -> dict[str, str]:
    """An entry of ``result.extract``; raises UserError."""
    head, colon, pattern = text.partition(":")
    words = head.split()
    try:
        groups = re.compile(pattern.strip()).groups
    except re.error as error:
        _refuse(f"--metric {text}: '{pattern.strip()}' is not a regular expression ({error})")
    usable = len(words) == 3 and words[2] in ("lower", "higher") and _NAME.fullmatch(words[0])
    if not usable or not colon or groups != 1:
        _refuse(
            f"--metric {text}: must be 'NAME UNIT lower|higher: PATTERN', with one group "
            r"for the number, as in 'time s lower: took ([\d.]+)'"
        )
    name, unit, better = words
    given = {"metric": name, "pattern": pattern.strip(), "unit": unit, "better": better}
    return {**given, "scope": "total"}


def _is_file(word: str) -> bool:
    return ("/" in word or "." in word) and Path(word).is_file()


def _refuse(text: str) -> NoReturn:
    raise UserError(f"scalesweep sweep: {text}")
