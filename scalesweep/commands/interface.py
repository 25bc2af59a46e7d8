"""What a user may type behind ``scalesweep``: commands, arguments and help.

All of it is here, and imports nothing that takes time: help comes at once.
"""

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from textwrap import indent
from typing import Any, NoReturn

from scalesweep import __version__
from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES
from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.importers import SOURCES
from scalesweep.smk.config_keys import ALLOWED, OVERRIDES


def count(text: str) -> int:
    """A number of repeats or ranks."""
    if text.isdecimal() and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text}: must be a whole number of 1 or more")


def counts(text: str) -> list[int]:
    """The numbers of ``256,512``."""
    return [count(it.strip()) for it in text.split(",")]


def amount(text: str) -> float:
    """Minutes or node-hours."""
    with contextlib.suppress(ValueError):
        if 0 < (number := float(text)) < math.inf:
            return number
    raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, such as 50")


def values(text: str) -> tuple[str, list[Any]]:
    """Name and values of ``NAME=VALUE,VALUE``."""
    if not (match := re.fullmatch(r"([a-z][a-z0-9_]*)=([^,]+(?:,[^,]+)*)", text)):
        raise argparse.ArgumentTypeError(f"{text}: must be NAME=VALUE,VALUE, NAME in lower case")
    words = match[2].split(",")
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return match[1], [kind(it) for it in words]
    return match[1], words


def metric(text: str) -> dict[str, str]:
    """An entry of ``result.extract`` in benchmark.yaml."""
    head, _, pattern = (part.strip() for part in text.partition(":"))
    try:
        re.compile(pattern)
    except re.error as why:
        raise argparse.ArgumentTypeError(f"'{pattern}' is not a regular expression: {why}") from why
    form = r"(?P<metric>[a-z][a-z0-9_]*) +(?P<unit>\S+) +(?P<better>lower|higher)"
    if not (named := re.fullmatch(form, head)):
        raise argparse.ArgumentTypeError(f"{text}: must be 'NAME UNIT lower|higher: PATTERN'")
    return {**named.groupdict(), "pattern": pattern, "scope": "total"}


Argument = tuple[str, dict[str, Any]]


class Command(argparse.ArgumentParser):
    """The arguments of a command, which a module carries out; with a line per example."""

    def __init__(
        self, name: str, module: str, text: str, arguments: Sequence[Argument], examples: str
    ) -> None:
        """``text``: what it does, in a line."""
        super().__init__(
            f"scalesweep {name}",
            description=text,
            epilog=f"examples:\n{indent(examples, '  ')}",
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.module, self.examples, self.names = module, examples, [it for it, _ in arguments]
        for names, keys in arguments:
            self.add_argument(*names.split(), **keys)

    def error(self, message: str) -> NoReturn:
        """Raise UserError: a line."""
        raise UserError(f"{self.prog}: {message}; see `{self.prog} --help`")


def _arg(name: str, text: str, default: Any = "", **more: Any) -> Argument:
    """An argument: its names, and the rest of what argparse takes."""
    return name, {"help": text, "default": default, **more}


def _settings(*keys: str) -> tuple[Argument, ...]:
    """Those of ``snakemake --config`` by their keys; Snakemake has a --profile of its own."""
    names = {**{key: f"--{key}" for key in keys}, "profile": "--profiler"}
    return tuple(_arg(names[key], OVERRIDES[key], None, choices=ALLOWED.get(key)) for key in keys)


_CAMPAIGN = (
    _arg("campaign", "a file, or NAME for config/campaigns/NAME.yaml; default: config/config.yaml",
         None, nargs="?"),
    *_settings("site", "results"),
)  # fmt: skip
_NAMED = (_arg("--campaign", "a file, or its name", None), *_settings("site", "results"))
_HISTORY = _settings("history", "baseline")
_FAIL_ON = _arg("--fail-on", "end with exit code 1 if there is one", None, choices=("regression",))
_DRY = _arg("-n --dry-run", "run nothing, say what would run", False, action="store_true")
_CALL = (
    _CAMPAIGN[0],
    *_settings(*(key for key in OVERRIDES if key != "campaign")),
    _arg("--profile", "of Snakemake, such as slurm; options of Snakemake follow after `--`", None),
    _DRY,
)
_COMMITS = (
    *_NAMED,
    *_HISTORY,
    _arg("--points", "an experiment, or an expression such as 'ranks == 2'; default: all points"),
    _arg("--metric", "a metric other than the main one"),
    _arg("--repeats", "runs of each commit at each point; default: the campaign's"),
    _DRY,
)
_PASS_ON = {"sweep": "put the command after `--`", "snakemake_call": ""}  # hints if it is missing
COMMANDS = {command.prog.split()[1]: command for command in (
    Command(
        "sweep", "sweep", "measure a command, which follows after `--`, over a grid",
        (_arg("--ranks", "rank counts, such as 1,2,4; default: 1", "1", type=counts),
         _arg("--param", "values of a parameter; may be repeated", None, action="append",
              metavar="NAME=V,V", type=values),
         _arg("--metric", "a number in its output, the group of the pattern; default: wall time",
              None, action="append", metavar="'NAME UNIT lower|higher: PATTERN'", type=metric),
         _arg("--stamps", "the command prints stamps of steps (docs/reference/stamps.md)", False,
              action="store_true"),
         _arg("--repeats", "runs of each point; default: 3", 3, type=count),
         _arg("--time-limit", "minutes after which a run is ended; default: 60", 60.0, type=amount),
         _arg("--scale", "the parameter that the command scales over; default: ranks", "ranks"),
         _arg("--scaling", "strong (the same work at each scale, the default), weak (the work "
              "grows), or none", "strong", choices=("strong", "weak", "none")),
         _arg("--out", "folder of campaign, site, benchmark and results; default: sweep", "sweep"),
         _arg("--slurm", "runs are jobs of Slurm; srun starts their ranks if {ranks} is not in the "
              "command", False, action="store_true"),
         _arg("--ranks-per-node", "ranks on a node of Slurm; default: 1", 1, type=count)),
        "scalesweep sweep --ranks 1,2,4 -- mpirun -np {ranks} ./app\n"
        "scalesweep sweep --param threads=1,2,4 --scale threads"
        " --metric 'time s lower: took ([\\d.]+)' -- env OMP_NUM_THREADS={threads} ./app"),
    Command(
        "run", "snakemake_call", "run what is pending of a campaign, and write its report",
        (*_CALL,
         _arg("--again", "set records aside and measure again: 'disturbed' runs, or those of an "
              "experiment", None)),
        "scalesweep run\nscalesweep run cosmoflow_io --profile slurm -- --jobs 20"),
    Command(
        "plan", "snakemake_call", "print what would run, and what it would cost", _CALL,
        "scalesweep plan --profile slurm"),
    Command(
        "report", "snakemake_call", "write the report of what is there, whatever is pending", _CALL,
        "scalesweep report"),
    Command(
        "cancel", "cancel", "cancel the Slurm jobs of a campaign's runs", _CAMPAIGN,
        "scalesweep cancel cosmoflow_io"),
    Command(
        "reread", "reread", "read logs again after the patterns of a benchmark.yaml have changed",
        _CAMPAIGN, "scalesweep reread my_campaign.yaml"),
    Command(
        "predict", "predict", "predict rank counts that were not measured",
        (*_CAMPAIGN,
         _arg("--ranks", "such as 256,512; default: the campaign's", (), type=counts)),
        "scalesweep predict --ranks 256,512"),
    Command(
        "advise", "advise", "choose what to measure next with so many node-hours",
        (*_CAMPAIGN, _arg("--budget", "node-hours; default: the campaign's", None, type=amount)),
        "scalesweep advise --budget 50"),
    Command(
        "compare", "compare", "compare two campaigns, sites or results folders",
        (_arg("BASE", "side to compare with: FOLDER, FOLDER@SITE or @SITE"),
         _arg("NEW", "side to compare, as BASE; default: the campaign's results", nargs="?"),
         *_NAMED),
        "scalesweep compare results/2025\nscalesweep compare @piz_daint @alps"),
    Command(
        "history", "history", "write the page of what became slower or faster over time",
        (*_CAMPAIGN, *_HISTORY, _FAIL_ON),
        "scalesweep history --fail-on regression"),
    Command(
        "ab", "ab", "measure two commits of a program alternately, and judge each point",
        (_arg("BASE", "the commit to compare with"), _arg("NEW", "the commit to compare"),
         *_COMMITS, _FAIL_ON),
        "scalesweep ab v1.2 HEAD --fail-on regression\n"
        "scalesweep ab v1.2 HEAD --points 'ranks == 2'"),
    Command(
        "bisect", "ab", "find the commit that made a program slower",
        (_arg("GOOD", "a commit that was as fast as wanted"), _arg("BAD", "a later, slower one"),
         *_COMMITS),
        "scalesweep bisect v1.2 HEAD"),
    Command(
        "import", "import_source", "import published results: logs, profiles, tables",
        (_arg("source", "file or folder of published results"),
         _arg("--map", "file: what columns of a table mean; without one a draft is printed"),
         _arg("--ranks", "ranks of runs whose files do not say them: a number, a map such as "
              "'{n128: 128, n256: 256}' by folder or file, or a YAML file of one"),
         _arg("--test", "test of nccl-tests, where logs do not say it"),
         _arg("--reader", "file: how logs of a program of your own are read"),
         _arg("--benchmark", "benchmark whose runs were profiled"),
         _arg("--site", "default: imported", "imported"),
         _arg("--results", "default: results/imported", "results/imported"),
         _arg("--commit", "what was measured: a commit, tag or branch of --repository"),
         _arg("--repository", "default: the working folder", "."),
         *_HISTORY,
         _arg("--as", "what the source is, where it may be several", dest="kind", choices=SOURCES),
         _arg("--no-report", "of imports into one folder only the last needs a report", True,
              action="store_false", dest="report")),
        "scalesweep import logs/ --ranks '{n128: 128, n256: 256}'\n"
        "scalesweep import table.csv --map table.map.yaml"),
    Command(
        "normal", "normal", "place training rates beside comparable published ones",
        (_arg("folder", "results folder with finished trainings"),
         _arg("--device", "the device, if runs do not say", choices=DEVICES, metavar="NAME"),
         _arg("--dtype", "type of numbers in products, likewise", choices=DTYPES)),
        "scalesweep normal results --device h100_sxm"),
    Command(
        "doctor", "doctor", "check what a campaign needs on a machine",
        (*_CAMPAIGN, *_settings("profile"),
         _arg("--profile", "runs are jobs of Slurm", None, choices=("slurm",))),
        "scalesweep doctor --site piz_daint --profile slurm"),
    Command(
        "study", "study", "make a study: a campaign, a site and a benchmark that run at once",
        (_arg("folder", "folder to make, new or empty"),), "scalesweep study ~/my_study"),
)}  # fmt: skip


def read(words: Sequence[str]) -> tuple[str, argparse.Namespace]:
    """The module that carries a call out, and its arguments: ``command``, and ``words``, what
    follows ``--``. Prints help, or the version, and exits if asked; raises UserError."""
    name, *own = words or ["--help"]
    if name in ("-h", "--help", "--version"):
        print(f"scalesweep {__version__}" if name == "--version" else overview())
        raise SystemExit(0)
    if name not in COMMANDS:
        raise UserError(f"scalesweep {name}: no such command; {choices(name, COMMANDS)}")
    command = COMMANDS[name]
    at = own.index("--") if command.module in _PASS_ON and "--" in own else len(own)
    if any(re.fullmatch("(--[a-z-]+=)?", word) for word in own[:at]):
        command.error("an argument is empty; leave it out, or name a value")
    args, unknown = command.parse_known_intermixed_args(own[:at])
    for word in unknown:
        near = did_you_mean(word, command.names)[:-1] or _PASS_ON.get(command.module, "")
        command.error(f"{word}: unknown{near and f'; {near}'}")
    args.command, args.words = name, own[at + 1 :]
    return command.module, args


def overview() -> str:
    """What ``scalesweep --help`` prints."""
    lines = "\n".join(f"  {name:11}{command.description}" for name, command in COMMANDS.items())
    return (
        f"usage: scalesweep COMMAND [ARGUMENT ...]\n\n{lines}\n\n"
        "`scalesweep COMMAND --help` explains a command; --version prints the version."
    )
