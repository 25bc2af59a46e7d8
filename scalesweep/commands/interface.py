"""What a user may type behind ``scalesweep``: commands, arguments and help.

All of it is here, and imports nothing that takes time: help comes at once.
"""

import argparse
import contextlib
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from scalesweep import __version__
from scalesweep.config.overrides import ALLOWED, OVERRIDES
from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.importers import SOURCES

USAGE = "scalesweep COMMAND [ARGUMENT ...]"
SLURM = "slurm"
LARGEST = 10_000_000  # number of ranks
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Parser(argparse.ArgumentParser):
    """One whose complaints are errors of the user: one line."""

    def error(self, message: str) -> NoReturn:
        """Raise UserError."""
        raise UserError(f"{self.prog}: {message}; see `{self.prog} --help`")

    def options(self) -> list[str]:
        """All options, such as ``--site``, in their order."""
        return [word for action in self._actions for word in action.option_strings]

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments; options may come between them. Raises UserError."""
        options = {name for a in self._actions if a.nargs != 0 for name in a.option_strings}
        for before, word in zip(("", *words), words, strict=False):
            name, equals, value = word.partition("=")
            if not word or (name in options and equals and not value):
                where = name or (before if before in options else "an argument")
                self.error(f"{where}: is empty; leave it out, or name a value")
        args, rest = self.parse_known_intermixed_args(words)
        if rest:
            near = did_you_mean(rest[0], self.options()) if rest[0].startswith("-") else ""
            self.error(f"{rest[0]}: unknown{near and f'; {near[:-1]}'}")
        return args


def whole_numbers(text: str) -> list[int]:
    """The numbers of ``256,512``."""
    words = text.split(",")
    if not all(it.strip().isdecimal() and 1 <= int(it) <= LARGEST for it in words):
        raise argparse.ArgumentTypeError(
            f"{text}: must be whole numbers from 1 to {LARGEST:,}, such as 256,512"
        )
    return [int(it) for it in words]


def whole_number(text: str) -> int:
    """A number of 1 or more."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number of 1 or more")
    return int(text)


def values(text: str) -> tuple[str, list[Any]]:
    """Name and values of ``NAME=VALUE,VALUE``."""
    name, equals, words = text.partition("=")
    if not equals or not _NAME.fullmatch(name) or not words:
        raise argparse.ArgumentTypeError(
            f"{text}: must be NAME=VALUE,VALUE; a name has lower-case letters, 0-9, _"
        )
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return name, [kind(it) for it in words.split(",")]
    return name, words.split(",")


def metric(text: str) -> dict[str, str]:
    """An entry of ``result.extract`` in benchmark.yaml."""
    head, _, pattern = text.partition(":")
    words, pattern = head.split(), pattern.strip()
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise argparse.ArgumentTypeError(
            f"{text}: '{pattern}' is not a regular expression ({error})"
        ) from None
    named = len(words) == 3 and words[2] in ("lower", "higher") and _NAME.fullmatch(words[0])
    if not named or groups != 1:
        raise argparse.ArgumentTypeError(
            f"{text}: must be 'NAME UNIT lower|higher: PATTERN', with one group for the number, as "
            r"in 'time s lower: took ([\d.]+)'"
        )
    name, unit, better = words
    return {"metric": name, "pattern": pattern, "unit": unit, "better": better, "scope": "total"}


def node_hours(text: str) -> float:
    """An amount above 0."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text}: must be a number of node-hours above 0, such as 50")


class Command(NamedTuple):
    """A command: its module, a line on what it does, its arguments, and examples."""

    module: str
    text: str
    arguments: tuple[tuple[str, dict[str, Any]], ...]
    examples: tuple[str, ...]


def _text(
    name: str, metavar: str, text: str, default: Any = "", **more: Any
) -> tuple[str, dict[str, Any]]:
    """An argument with a value."""
    return name, {"metavar": metavar, "help": text, "default": default, **more}


def _flag(name: str, text: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """An argument that is there or not."""
    return name, {"action": "store_true", "help": text, **more}


_SITE = _text("--site", "NAME", OVERRIDES["site"], None)
_RESULTS = _text("--results", "FOLDER", OVERRIDES["results"], None)
_CAMPAIGN = (
    _text("campaign", "CAMPAIGN", "a file, or NAME for config/campaigns/NAME.yaml; default: "
          "config/config.yaml", None, nargs="?"),
    _SITE, _RESULTS,
)  # fmt: skip
_NAMED = (_text("--campaign", "C", "campaign: a file, or its name", None), _SITE, _RESULTS)
_HISTORY = (
    _text("--history", "FOLDER", OVERRIDES["history"], None),
    _text("--baseline", "COMMIT", OVERRIDES["baseline"], None),
)
_PROFILER = _text(
    "--profiler", "KIND", f"{OVERRIDES['profile']}: {', '.join(ALLOWED['profile'])}", None,
    choices=ALLOWED["profile"],
)  # fmt: skip
_PROFILE = _text("--profile", "NAME", "profile of Snakemake, such as slurm", None)
_COMMITS = (
    *_NAMED,
    *_HISTORY,
    _text(
        "--points", "P", "an experiment, or an expression such as 'ranks == 2'; default: all points"
    ),
    _text("--metric", "M", "a metric other than the main one"),
    _text("--repeats", "N", "runs of each commit at each point; default: the campaign's"),
    _flag("--dry-run", "say what it costs, measure nothing"),
)
COMMANDS = {
    "sweep": Command(
        "sweep", "measure a command over a grid, without a YAML file",
        (_text("--ranks", "1,2,4", "rank counts; default: 1", "1", type=whole_numbers),
         _text("--param", "NAME=V,V", "values of a parameter; may be repeated", None,
               action="append", type=values),
         _text("--metric", "'NAME UNIT lower|higher: PATTERN'", "a number that the command prints, "
               "the group of the pattern; the first one is shown; default: the wall time", None,
               action="append", type=metric),
         _flag("--stamps",
               "the command prints stamps of its steps, which are read, instead of metrics"),
         _text("--repeats", "N", "runs of each point; default: 3", 3, type=whole_number),
         _text("--scale", "NAME", "the parameter that it scales over; default: ranks", "ranks"),
         _text("--scaling", "KIND", "strong (the same work at each scale, the default), weak (the "
               "work grows), or none", "strong", choices=("strong", "weak", "none")),
         _text("--out", "FOLDER", "where campaign, site, benchmark and results go; default: sweep",
               "sweep"),
         _flag("--slurm", "runs are jobs of Slurm"),
         _text("--ranks-per-node", "N", "ranks on a node of Slurm; default: 1", 1,
               type=whole_number)),
        ("scalesweep sweep --ranks 1,2,4 -- mpirun -np {ranks} ./app",
         "scalesweep sweep --param threads=1,2,4 --scale threads"
         " --metric 'time s lower: took ([\\d.]+)' -- env OMP_NUM_THREADS={threads} ./app"),
    ),
    "run": Command(
        "snakemake_call", "run what is pending of a campaign, and write its report",
        (*_CAMPAIGN, _PROFILER, _PROFILE, *_HISTORY,
         _flag("--dry-run", "list the jobs, run nothing"),
         _flag("--try-shapes", OVERRIDES["try"]),
         _flag("--retry-unsupported", OVERRIDES["retry"]),
         _text("--again", "WHAT", "set records aside and measure again: 'disturbed' runs, or those "
               "of an experiment", None)),
        ("scalesweep run", "scalesweep run cosmoflow_io --profile slurm -- --jobs 20"),
    ),
    "cancel": Command(
        "cancel", "cancel the Slurm jobs of a campaign's runs", _CAMPAIGN,
        ("scalesweep cancel cosmoflow_io",),
    ),
    "reread": Command(
        "reread", "read logs again after the patterns of a benchmark.yaml have changed", _CAMPAIGN,
        ("scalesweep reread my_campaign.yaml",),
    ),
    "plan": Command(
        "snakemake_call", "print what would run, and what it would cost",
        (*_CAMPAIGN, _PROFILER, _PROFILE), ("scalesweep plan --profile slurm",),
    ),
    "report": Command(
        "snakemake_call", "write the report of what is there, whatever is pending",
        (*_CAMPAIGN, _PROFILER, *_HISTORY), ("scalesweep report",),
    ),
    "predict": Command(
        "predict", "predict rank counts that were not measured",
        (*_CAMPAIGN, _text("--ranks", "256,512", "rank counts; default: the campaign's", (),
                            type=whole_numbers)),
        ("scalesweep predict --ranks 256,512",),
    ),
    "advise": Command(
        "advise", "choose what to measure next with so many node-hours",
        (*_CAMPAIGN,
         _text("--budget", "NODE_HOURS", "default: the campaign's", None, type=node_hours)),
        ("scalesweep advise --budget 50",),
    ),
    "compare": Command(
        "compare", "compare two campaigns, sites or results folders",
        (_text("base", "BASE", "side to compare with: FOLDER, FOLDER@SITE or @SITE"),
         _text("new", "NEW", "side to compare, as BASE; default: the campaign's results",
               nargs="?"),
         *_NAMED),
        ("scalesweep compare results/2025", "scalesweep compare @piz_daint @alps"),
    ),
    "history": Command(
        "history", "write the page of what became slower or faster over time",
        (*_CAMPAIGN, *_HISTORY,
         _text("--fail-on", "regression", "end with exit code 1 if there is one",
               choices=("regression",))),
        ("scalesweep history --fail-on regression",),
    ),
    "ab": Command(
        "ab", "measure two commits of a program alternately, and judge each point",
        (_text("base", "BASE", "the commit to compare with"),
         _text("new", "NEW", "the commit to compare"), *_COMMITS),
        ("scalesweep ab v1.2 HEAD -n", "scalesweep ab v1.2 HEAD --points 'ranks == 2'"),
    ),
    "bisect": Command(
        "ab", "find the commit that made a program slower",
        (_text("good", "GOOD", "a commit that was as fast as wanted"),
         _text("bad", "BAD", "a later, slower one"), *_COMMITS),
        ("scalesweep bisect v1.2 HEAD",),
    ),
    "import": Command(
        "import_source", "import published results: logs, profiles, tables",
        (_text("source", "SOURCE", "file or folder of published results"),
         _text("--map", "FILE", "what the columns of a table mean; without one a draft is printed"),
         _text("--ranks", "N|MAP|FILE", "ranks of runs whose files do not say them: a number, a "
               "map such as '{n128: 128, n256: 256}' by folder or file, or a YAML file of one"),
         _text("--test", "NAME", "test of nccl-tests, where logs do not say it"),
         _text("--reader", "FILE", "how logs of a program of your own are read"),
         _text("--benchmark", "NAME", "benchmark whose runs were profiled"),
         _text("--site", "LABEL", "default: imported", "imported"),
         _text("--results", "FOLDER", "default: results/imported", "results/imported"),
         _text("--commit", "COMMIT",
               "commit that was measured: hexadecimal digits, or what --repository knows"),
         _text("--repository", "FOLDER", "repository of the commit"),
         *_HISTORY,
         _text("--as", "KIND", f"what the source is, where it may be several: {', '.join(SOURCES)}",
               None, choices=SOURCES, dest="kind"),
         _flag("--no-report", "of several imports into one folder only the last needs a report",
               action="store_false", dest="report")),
        ("scalesweep import logs/ --ranks '{n128: 128, n256: 256}'",
         "scalesweep import table.csv --map table.map.yaml"),
    ),
    "normal": Command(
        "normal", "place training rates beside comparable published ones",
        (_text("folder", "RESULTS", "results folder with finished trainings"),
         _text("--device", "NAME", "what each rank computes on, such as h100_sxm, where the "
               "benchmark does not say it"),
         _text("--dtype", "TYPE", "type of the numbers in products, such as bfloat16, where the "
               "benchmark does not say it")),
        ("scalesweep normal results", "scalesweep normal results --device h100_sxm"),
    ),
    "doctor": Command(
        "doctor", "check what a campaign needs on a machine",
        (*_CAMPAIGN, _text("--profile", SLURM, "runs are jobs of Slurm", None, choices=(SLURM,)),
         _PROFILER),
        ("scalesweep doctor --site piz_daint --profile slurm",),
    ),
    "study": Command(
        "study", "make a study: a campaign, a site and a benchmark that run at once",
        (_text("folder", "FOLDER", "folder to make, new or empty"),),
        ("scalesweep study ~/my_study",),
    ),
}  # fmt: skip
# Behind `--`: options of Snakemake, or the command to measure.
_TAKE_MORE = ("snakemake_call", "sweep")


def read(words: Sequence[str]) -> tuple[str, argparse.Namespace]:
    """The module that carries a call out, and its arguments: ``command``, and ``words``, what
    follows ``--``. Prints help, or the version, and exits if asked; raises UserError."""
    name = words[0] if words else "--help"
    if name in ("-h", "--help", "--version"):
        print(f"scalesweep {__version__}" if name == "--version" else overview())
        raise SystemExit(0)
    if name not in COMMANDS:
        raise UserError(f"scalesweep {name}: no such command; {choices(name, COMMANDS)}")
    command, own, rest = COMMANDS[name], list(words[1:]), []
    if command.module in _TAKE_MORE and "--" in own:
        at = own.index("--")
        own, rest = own[:at], own[at + 1 :]
    args = parser_of(name).read(own)
    args.command, args.words = name, rest
    return command.module, args


def parser_of(name: str) -> Parser:
    """The parser of a command's arguments."""
    command = COMMANDS[name]
    more = " -- COMMAND" if name == "sweep" else ""
    examples = "\n".join(f"  {example}" for example in command.examples)
    after = "Options of Snakemake may follow after `--`.\n\n"
    parser = Parser(
        prog=f"scalesweep {name}", description=f"{command.text[0].upper()}{command.text[1:]}.",
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"scalesweep {name} [OPTION ...]{more}" if more else None,
        epilog=f"{after * (command.module == 'snakemake_call')}examples:\n{examples}",
    )  # fmt: skip
    for argument, keys in command.arguments:
        parser.add_argument(*(["-n"] if argument == "--dry-run" else []), argument, **keys)
    return parser


def overview() -> str:
    """What ``scalesweep --help`` prints."""
    lines = [f"  {name:11}{command.text}" for name, command in COMMANDS.items()]
    return "\n".join(
        [f"usage: {USAGE}", "", "Scaling studies of distributed deep learning.", "", *lines, "",
         "`scalesweep COMMAND --help` explains a command; --version prints the version."]
    )  # fmt: skip
