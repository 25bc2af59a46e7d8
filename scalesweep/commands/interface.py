"""What a user may type behind ``scalesweep``: commands, arguments and help.

All of it is here, and imports nothing that takes time: help comes at once.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from scalesweep import __version__
from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.core.profilers import KINDS, NONE
from scalesweep.importers import SOURCES

USAGE = "scalesweep COMMAND [ARGUMENT ...]"
REGRESSION = "regression"
SLURM = "slurm"


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


class Command(NamedTuple):
    """A command: its module, a line on what it does, its arguments, and examples.

    ``more``: what is said of arguments instead of what ``_ARGUMENTS`` has.
    """

    module: str
    text: str
    arguments: tuple[str, ...]
    examples: tuple[str, ...]
    more: Mapping[str, Mapping[str, Any]] = {}


def _text(metavar: str, text: str, default: str | None = "") -> dict[str, Any]:
    """An argument with a value."""
    return {"metavar": metavar, "help": text, "default": default}


def _flag(text: str) -> dict[str, Any]:
    """An argument that is there or not."""
    return {"action": "store_true", "help": text}


def _one_of(allowed: Sequence[str], text: str, metavar: str, **more: Any) -> dict[str, Any]:
    """An argument with one of these values."""
    return {"choices": allowed, "metavar": metavar, "help": text, **more}


# What is added for an argument.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "campaign": {
        **_text("CAMPAIGN", "a file, or NAME for config/campaigns/NAME.yaml; default: "
                "config/config.yaml", None), "nargs": "?",
    },
    "--campaign": _text("C", "campaign: a file, or its name", None),
    "--site": _text("NAME", "site instead of the campaign's", None),
    "--results": _text("FOLDER", "results folder instead of the campaign's", None),
    "--history": _text("FOLDER", "folder of the history", None),
    "--baseline": _text("COMMIT", "the commit or tag that counts as 1.0 in the history", None),
    "--profiler": _one_of(
        (NONE, *KINDS), f"profile each point once more: {', '.join((NONE, *KINDS))}", "KIND"
    ),
    "--profile": _text("NAME", "profile of Snakemake, such as slurm", None),
    "--dry-run": _flag("say what it costs, measure nothing"),
    "--try-shapes": _flag(
        "of each shape (experiment, ranks, what Slurm is asked for) only one run"
    ),
    "--retry-unsupported": _flag("run the points again that this machine could not run"),
    "--again": _text(
        "WHAT", "set records aside and measure again: 'disturbed' runs, or those of an experiment",
        None,
    ),
    "--ranks": _text("256,512", "rank counts; default: the campaign's"),
    "--budget": _text("NODE_HOURS", "default: the campaign's"),
    "base": _text("BASE", "side to compare with: FOLDER, FOLDER@SITE or @SITE"),
    "new": {
        **_text("NEW", "side to compare, as BASE; default: the campaign's results"), "nargs": "?"
    },
    "good": _text("GOOD", "a commit that was as fast as wanted"),
    "bad": _text("BAD", "a later, slower one"),
    "--fail-on": _one_of((REGRESSION,), "end with exit code 1 if there is one", REGRESSION),
    "--points": _text(
        "P", "an experiment, or an expression such as 'ranks == 2'; default: all points"
    ),
    "--metric": _text("M", "a metric other than the main one"),
    "--repeats": _text("N", "runs of each commit at each point; default: the campaign's"),
    "source": _text("SOURCE", "file or folder of published results"),
    "--map": _text("FILE", "what the columns of a table mean; without one a draft is printed"),
    "--test": _text("NAME", "test of nccl-tests, where logs do not say it"),
    "--reader": _text("FILE", "how logs of a program of your own are read"),
    "--benchmark": _text("NAME", "benchmark whose runs were profiled"),
    "--commit": _text(
        "COMMIT", "commit that was measured: hexadecimal digits, or what --repository knows"
    ),
    "--repository": _text("FOLDER", "repository of the commit"),
    "--as": _one_of(
        SOURCES, f"what the source is, where it may be several: {', '.join(SOURCES)}", "KIND",
        dest="kind",
    ),
    "--no-report": {
        **_flag("of several imports into one folder only the last needs a report"),
        "action": "store_false", "dest": "report",
    },
    "folder": _text("FOLDER", "folder to make, new or empty"),
    "--device": _text(
        "NAME", "what each rank computes on, such as h100_sxm, where the benchmark does not say it"
    ),
    "--dtype": _text(
        "TYPE", "type of the numbers in products, such as bfloat16, where the benchmark does not "
        "say it",
    ),
    "--param": {
        **_text("NAME=V,V", "values of a parameter; may be repeated", None), "action": "append"
    },
    "--scale": _text("NAME", "the parameter that it scales over; default: ranks", "ranks"),
    "--scaling": _one_of(
        ("strong", "weak", "none"), "strong (the same work at each scale, the default), weak (the "
        "work grows), or none", "KIND", default="strong",
    ),
    "--stamps": _flag("the command prints stamps of its steps, which are read, instead of metrics"),
    "--out": _text(
        "FOLDER", "where campaign, site, benchmark and results go; default: sweep", "sweep"
    ),
    "--slurm": _flag("runs are jobs of Slurm"),
    "--ranks-per-node": _text("N", "ranks on a node of Slurm; default: 1", "1"),
}  # fmt: skip
_SHORT = {"--dry-run": ("-n",)}
_CAMPAIGN = ("campaign", "--site", "--results")
_NAMED = ("--campaign", "--site", "--results")
_HISTORY = ("--history", "--baseline")
_SNAKEMAKE = (*_CAMPAIGN, "--profiler")
_COMMITS = (*_NAMED, *_HISTORY, "--points", "--metric", "--repeats", "--dry-run")
COMMANDS = {
    "sweep": Command(
        "sweep", "measure a command over a grid, without a YAML file",
        ("--ranks", "--param", "--metric", "--stamps", "--repeats", "--scale", "--scaling",
         "--out", "--slurm", "--ranks-per-node"),
        ("scalesweep sweep --ranks 1,2,4 -- mpirun -np {ranks} ./app",
         "scalesweep sweep --param threads=1,2,4 --scale threads"
         " --metric 'time s lower: took ([\\d.]+)' -- env OMP_NUM_THREADS={threads} ./app"),
        {
            "--ranks": _text("1,2,4", "rank counts; default: 1", "1"),
            "--metric": {
                **_text(
                    "'NAME UNIT lower|higher: PATTERN'", "a number that the command prints, the "
                    "group of the pattern; the first one is shown; default: the wall time", None,
                ),
                "action": "append",
            },
            "--repeats": _text("N", "runs of each point; default: 3", "3"),
        },
    ),
    "run": Command(
        "snakemake_call", "run what is pending of a campaign, and write its report",
        (*_SNAKEMAKE, "--profile", *_HISTORY, "--dry-run", "--try-shapes", "--retry-unsupported",
         "--again"),
        ("scalesweep run", "scalesweep run cosmoflow_io --profile slurm -- --jobs 20"),
        {"--dry-run": {"help": "list the jobs, run nothing"}},
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
        (*_SNAKEMAKE, "--profile"), ("scalesweep plan --profile slurm",),
    ),
    "report": Command(
        "snakemake_call", "write the report of what is there, whatever is pending",
        (*_SNAKEMAKE, *_HISTORY), ("scalesweep report",),
    ),
    "predict": Command(
        "predict", "predict rank counts that were not measured", (*_CAMPAIGN, "--ranks"),
        ("scalesweep predict --ranks 256,512",),
    ),
    "advise": Command(
        "advise", "choose what to measure next with so many node-hours", (*_CAMPAIGN, "--budget"),
        ("scalesweep advise --budget 50",),
    ),
    "compare": Command(
        "compare", "compare two campaigns, sites or results folders", ("base", "new", *_NAMED),
        ("scalesweep compare results/2025", "scalesweep compare @piz_daint @alps"),
    ),
    "history": Command(
        "history", "write the page of what became slower or faster over time",
        (*_CAMPAIGN, *_HISTORY, "--fail-on"), ("scalesweep history --fail-on regression",),
    ),
    "ab": Command(
        "ab", "measure two commits of a program alternately, and judge each point",
        ("base", "new", *_COMMITS),
        ("scalesweep ab v1.2 HEAD -n", "scalesweep ab v1.2 HEAD --points 'ranks == 2'"),
        {"base": {"help": "the commit to compare with"},
         "new": {"help": "the commit to compare", "nargs": None}},
    ),
    "bisect": Command(
        "bisect", "find the commit that made a program slower", ("good", "bad", *_COMMITS),
        ("scalesweep bisect v1.2 HEAD",),
    ),
    "import": Command(
        "import_source", "import published results: logs, profiles, tables",
        ("source", "--map", "--ranks", "--test", "--reader", "--benchmark", "--site",
         "--results", "--commit", "--repository", *_HISTORY, "--as", "--no-report"),
        ("scalesweep import logs/ --ranks '{n128: 128, n256: 256}'",
         "scalesweep import table.csv --map table.map.yaml"),
        {
            "--ranks": _text(
                "N|MAP|FILE", "ranks of runs whose files do not say them: a number, a map such as "
                "'{n128: 128, n256: 256}' by folder or file, or a YAML file of one",
            ),
            "--site": _text("LABEL", "default: imported", "imported"),
            "--results": _text("FOLDER", "default: results/imported", "results/imported"),
        },
    ),
    "normal": Command(
        "normal", "place training rates beside comparable published ones",
        ("folder", "--device", "--dtype"),
        ("scalesweep normal results", "scalesweep normal results --device h100_sxm"),
        {"folder": {"metavar": "RESULTS", "help": "results folder with finished trainings"}},
    ),
    "doctor": Command(
        "doctor", "check what a campaign needs on a machine",
        (*_CAMPAIGN, "--profile", "--profiler"),
        ("scalesweep doctor --site piz_daint --profile slurm",),
        {"--profile": {"choices": (SLURM,), "metavar": SLURM, "help": "runs are jobs of Slurm"}},
    ),
    "study": Command(
        "study", "make a study: a campaign, a site and a benchmark that run at once",
        ("folder",), ("scalesweep study ~/my_study",),
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
    args.command, args.line, args.words = name, list(words[1:]), rest
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
    for argument in command.arguments:
        keys = {**_ARGUMENTS[argument], **command.more.get(argument, {})}
        parser.add_argument(*_SHORT.get(argument, ()), argument, **keys)
    return parser


def overview() -> str:
    """What ``scalesweep --help`` prints."""
    lines = [f"  {name:11}{command.text}" for name, command in COMMANDS.items()]
    return "\n".join(
        [f"usage: {USAGE}", "", "Scaling studies of distributed deep learning.", "", *lines, "",
         "`scalesweep COMMAND --help` explains a command; --version prints the version."]
    )  # fmt: skip
