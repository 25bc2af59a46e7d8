"""What a user may type behind ``scalesweep``: commands, arguments and help.

All of it is here, and imports nothing that takes time: help comes at once.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

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

    def described(self) -> list[tuple[str, str]]:
        """Each argument as it is typed, and what it means."""
        return [
            (" ".join([", ".join(it.option_strings), str(it.metavar or "")]).strip(), it.help or "")
            for it in self._actions
            if it.dest != "help"
        ]

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments; options may come between them. Raises UserError."""
        self._check_each(words)
        args, rest = self.parse_known_intermixed_args(words)
        if rest:
            near = did_you_mean(rest[0], self.options()) if rest[0].startswith("-") else ""
            self.error(f"{rest[0]}: unknown{near and f'; {near[:-1]}'}")
        return args

    def _check_each(self, words: Sequence[str]) -> None:
        """Raise UserError for an empty argument, as of a variable that is not set."""
        options = {name for a in self._actions if a.nargs != 0 for name in a.option_strings}
        for before, word in zip(("", *words), words, strict=False):
            name, equals, value = word.partition("=")
            if not word or (name in options and equals and not value):
                where = name or (before if before in options else "an argument")
                self.error(f"{where}: is empty; leave it out, or name a value")


@dataclass(frozen=True)
class Command:
    """A command: its module, a line on what it does, its arguments, and examples."""

    module: str
    text: str
    add: Callable[[Parser], None]
    examples: tuple[str, ...] = ()


def _campaign(parser: Parser, site: str = "site instead of the campaign's") -> None:
    parser.add_argument(
        "campaign", nargs="?", metavar="CAMPAIGN",
        help="a file, or NAME for config/campaigns/NAME.yaml; default: config/config.yaml",
    )  # fmt: skip
    _common(parser, site)


def _named_campaign(parser: Parser) -> None:
    parser.add_argument("--campaign", metavar="C", help="campaign: a file, or its name")
    _common(parser)


def _common(parser: Parser, site: str = "site instead of the campaign's") -> None:
    parser.add_argument("--site", metavar="NAME", help=site)
    parser.add_argument(
        "--results", metavar="FOLDER", help="results folder instead of the campaign's"
    )


def _history(parser: Parser) -> None:
    parser.add_argument("--history", metavar="FOLDER", help="folder of the history")
    parser.add_argument(
        "--baseline", metavar="COMMIT", help="the commit or tag that counts as 1.0 in the history"
    )


def _profiler(parser: Parser) -> None:
    parser.add_argument(
        "--profiler", choices=(NONE, *KINDS), metavar="KIND",
        help=f"profile each point once more: {', '.join((NONE, *KINDS))}",
    )  # fmt: skip


def _slurm(parser: Parser) -> None:
    parser.add_argument("--profile", choices=(SLURM,), metavar=SLURM, help="runs are jobs of Slurm")


def _snakemake(parser: Parser) -> None:
    """What ``run``, ``plan`` and ``report`` share."""
    _campaign(parser)
    _profiler(parser)
    parser.epilog = "Options of Snakemake may follow after `--`."


def _run(parser: Parser) -> None:
    _plan(parser)
    _history(parser)
    parser.add_argument("-n", "--dry-run", action="store_true", help="list the jobs, run nothing")
    parser.add_argument(
        "--try-shapes", action="store_true",
        help="of each shape (experiment, ranks, what Slurm is asked for) only one run",
    )  # fmt: skip
    parser.add_argument(
        "--retry-unsupported", action="store_true",
        help="run the points again that this machine could not run",
    )  # fmt: skip
    parser.add_argument(
        "--again", metavar="WHAT",
        help="set records aside and measure again: 'disturbed' runs, or those of an experiment",
    )  # fmt: skip


def _cancel(parser: Parser) -> None:
    _campaign(parser)
    parser.set_defaults(profile=SLURM)


def _reread(parser: Parser) -> None:
    _campaign(parser)


def _plan(parser: Parser) -> None:
    _snakemake(parser)
    parser.add_argument("--profile", metavar="NAME", help="profile of Snakemake, such as slurm")


def _report(parser: Parser) -> None:
    _snakemake(parser)
    _history(parser)


def _predict(parser: Parser) -> None:
    _campaign(parser)
    parser.add_argument(
        "--ranks", default="", metavar="256,512", help="rank counts; default: the campaign's"
    )


def _advise(parser: Parser) -> None:
    _campaign(parser)
    parser.add_argument(
        "--budget", default="", metavar="NODE_HOURS", help="default: the campaign's"
    )


def _compare(parser: Parser) -> None:
    side = "FOLDER, FOLDER@SITE or @SITE"
    parser.add_argument("base", metavar="BASE", help=f"side to compare with: {side}")
    parser.add_argument(
        "new", metavar="NEW", nargs="?", default="",
        help=f"side to compare: {side}; default: the campaign's results",
    )  # fmt: skip
    _named_campaign(parser)


def _history_page(parser: Parser) -> None:
    _campaign(parser)
    _history(parser)
    parser.add_argument(
        "--fail-on", choices=(REGRESSION,), metavar=REGRESSION,
        help="end with exit code 1 if there is one",
    )  # fmt: skip


def _commits(base: str, new: str, what: tuple[str, str]) -> Callable[[Parser], None]:
    def add(parser: Parser) -> None:
        for name, text in zip((base, new), what, strict=True):
            parser.add_argument(name, metavar=name.upper(), help=text)
        _named_campaign(parser)
        _history(parser)
        parser.add_argument(
            "--points", default="", metavar="P",
            help="an experiment, or an expression such as 'ranks == 2'; default: all points",
        )  # fmt: skip
        parser.add_argument(
            "--metric", default="", metavar="M", help="a metric other than the main one"
        )
        parser.add_argument(
            "--repeats", default="", metavar="N",
            help="runs of each commit at each point; default: the campaign's",
        )  # fmt: skip
        parser.add_argument(
            "-n", "--dry-run", action="store_true", help="say what it costs, measure nothing"
        )

    return add


def _import(parser: Parser) -> None:
    """Add the arguments of ``scalesweep import``."""
    parser.add_argument("source", metavar="SOURCE", help="file or folder of published results")
    parser.add_argument(
        "--map", default="", metavar="FILE",
        help="what the columns of a table mean; without one a draft is printed",
    )  # fmt: skip
    parser.add_argument(
        "--ranks", default="", metavar="N|MAP|FILE",
        help="ranks of runs whose files do not say them: a number, a map such as"
        " '{n128: 128, n256: 256}' by folder or file, or a YAML file of one",
    )  # fmt: skip
    parser.add_argument(
        "--test", default="", metavar="NAME", help="test of nccl-tests, where logs do not say it"
    )
    parser.add_argument(
        "--reader", default="", metavar="FILE", help="how logs of a program of your own are read"
    )
    parser.add_argument(
        "--benchmark", default="", metavar="NAME", help="benchmark whose runs were profiled"
    )
    parser.add_argument(
        "--window", default="", metavar="FROM:TO",
        help="of databases of nsys or nvprof the part from and to so many seconds after the first"
        " event",
    )  # fmt: skip
    parser.add_argument("--site", default="imported", metavar="LABEL", help="default: imported")
    parser.add_argument(
        "--results", default="results/imported", metavar="FOLDER", help="default: results/imported"
    )
    parser.add_argument(
        "--commit", default="", metavar="COMMIT",
        help="commit that was measured: hexadecimal digits, or what --repository knows",
    )  # fmt: skip
    parser.add_argument(
        "--repository", default="", metavar="FOLDER", help="repository of the commit"
    )
    _history(parser)
    parser.add_argument(
        "--as", dest="kind", choices=SOURCES, metavar="KIND",
        help=f"what the source is, where it may be several: {', '.join(SOURCES)}",
    )  # fmt: skip
    parser.add_argument(
        "--no-report", dest="report", action="store_false",
        help="of several imports into one folder only the last needs a report",
    )  # fmt: skip


def _normal(parser: Parser) -> None:
    parser.add_argument("folder", metavar="RESULTS", help="results folder with finished trainings")
    parser.add_argument(
        "--device", default="", metavar="NAME",
        help="what each rank computes on, such as h100_sxm, where the benchmark does not say it",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", default="", metavar="TYPE",
        help="type of the numbers in products, such as bfloat16, where the benchmark does not say "
        "it",
    )  # fmt: skip


def _doctor(parser: Parser) -> None:
    _campaign(parser, "the site to check, instead of the campaign's")
    _slurm(parser)
    _profiler(parser)


def _study(parser: Parser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="folder to make, new or empty")
    parser.add_argument(
        "--from", dest="script", default="", metavar="SCRIPT",
        help="a training script in Python: its options become parameters, a trial on one rank shows"
        " what it prints; words after `--` are handed to it",
    )  # fmt: skip
    parser.add_argument(
        "--python", default="", metavar="PATH", help="the Python that starts the script"
    )


def _sweep(parser: Parser) -> None:
    parser.add_argument("--ranks", default="1", metavar="1,2,4", help="rank counts; default: 1")
    parser.add_argument(
        "--param",
        action="append",
        metavar="NAME=V,V",
        help="values of a parameter; may be repeated",
    )
    parser.add_argument(
        "--metric", action="append", metavar="'NAME UNIT lower|higher: PATTERN'",
        help="a number that the command prints, the group of the pattern; the first one is shown;"
        " default: the wall time",
    )  # fmt: skip
    parser.add_argument(
        "--repeats", default="3", metavar="N", help="runs of each point; default: 3"
    )
    parser.add_argument(
        "--scale", default="ranks", metavar="NAME",
        help="the parameter that it scales over; default: ranks",
    )  # fmt: skip
    parser.add_argument(
        "--scaling", default="strong", choices=("strong", "weak", "none"), metavar="KIND",
        help="strong (the same work at each scale, the default), weak (the work grows), or none",
    )  # fmt: skip
    parser.add_argument(
        "--out", default="sweep", metavar="FOLDER",
        help="where campaign, site, benchmark and results go; default: sweep",
    )  # fmt: skip
    parser.add_argument("--slurm", action="store_true", help="runs are jobs of Slurm")
    parser.add_argument(
        "--ranks-per-node", default="1", metavar="N",
        help="ranks on a node of Slurm; default: 1",
    )  # fmt: skip
    parser.usage = "scalesweep sweep [OPTION ...] -- COMMAND"


COMMANDS = {
    "sweep": Command(
        "sweep", "measure a command over a grid, without a YAML file", _sweep,
        ("scalesweep sweep --ranks 1,2,4 -- mpirun -np {ranks} ./app",
         "scalesweep sweep --param threads=1,2,4 --scale threads"
         " --metric 'time s lower: took ([\\d.]+)' -- env OMP_NUM_THREADS={threads} ./app"),
    ),
    "run": Command(
        "snakemake_call", "run what is pending of a campaign, and write its report", _run,
        ("scalesweep run", "scalesweep run cosmoflow_io --profile slurm -- --jobs 20"),
    ),
    "cancel": Command(
        "cancel", "cancel the Slurm jobs of a campaign's runs", _cancel,
        ("scalesweep cancel cosmoflow_io",),
    ),
    "reread": Command(
        "reread", "read logs again after the patterns of a benchmark.yaml have changed", _reread,
        ("scalesweep reread my_campaign.yaml",),
    ),
    "plan": Command(
        "snakemake_call", "print what would run, and what it would cost", _plan,
        ("scalesweep plan --profile slurm",),
    ),
    "report": Command(
        "snakemake_call", "write the report of what is there, whatever is pending", _report,
        ("scalesweep report",),
    ),
    "predict": Command(
        "predict", "predict rank counts that were not measured", _predict,
        ("scalesweep predict --ranks 256,512",),
    ),
    "advise": Command(
        "advise", "choose what to measure next with so many node-hours", _advise,
        ("scalesweep advise --budget 50",),
    ),
    "compare": Command(
        "compare", "compare two campaigns, sites or results folders", _compare,
        ("scalesweep compare results/2025", "scalesweep compare @piz_daint @alps"),
    ),
    "history": Command(
        "history", "write the page of what became slower or faster over time", _history_page,
        ("scalesweep history --fail-on regression",),
    ),
    "ab": Command(
        "ab", "measure two commits of a program alternately, and judge each point",
        _commits("base", "new", ("the commit to compare with", "the commit to compare")),
        ("scalesweep ab v1.2 HEAD -n", "scalesweep ab v1.2 HEAD --points 'ranks == 2'"),
    ),
    "bisect": Command(
        "bisect", "find the commit that made a program slower",
        _commits("good", "bad", ("a commit that was as fast as wanted", "a later, slower one")),
        ("scalesweep bisect v1.2 HEAD",),
    ),
    "import": Command(
        "import_source", "import published results: logs, profiles, tables", _import,
        ("scalesweep import logs/ --ranks '{n128: 128, n256: 256}'",
         "scalesweep import table.csv --map table.map.yaml"),
    ),
    "normal": Command(
        "normal", "place training rates beside comparable published ones", _normal,
        ("scalesweep normal results", "scalesweep normal results --device h100_sxm"),
    ),
    "doctor": Command(
        "doctor", "check what a campaign needs on a machine", _doctor,
        ("scalesweep doctor --site piz_daint --profile slurm",),
    ),
    "study": Command(
        "study", "make a study: a campaign, a site and a benchmark that run at once", _study,
        ("scalesweep study ~/my_study", "scalesweep study my_study --from train.py -- --epochs 1"),
    ),
}  # fmt: skip


def read(words: Sequence[str]) -> tuple[str, argparse.Namespace]:
    """The module that carries a call out, and its arguments: ``command``, and ``snakemake``, what
    follows ``--``. Prints help, or the version, and exits if asked; raises UserError."""
    name = words[0] if words else "--help"
    if name in ("-h", "--help"):
        print(overview())
        raise SystemExit(0)
    if name == "--version":
        print(f"scalesweep {__version__}")
        raise SystemExit(0)
    if name not in COMMANDS:
        raise UserError(f"scalesweep {name}: no such command; {choices(name, COMMANDS)}")
    command, own, rest = COMMANDS[name], list(words[1:]), []
    if command.module in ("snakemake_call", "study", "sweep") and "--" in own:
        at = own.index("--")
        own, rest = own[:at], own[at + 1 :]
    args = parser_of(name).read(own)
    args.command, args.line, args.snakemake, args.words = name, list(words[1:]), rest, rest
    return command.module, args


def parser_of(name: str) -> Parser:
    """The parser of a command's arguments."""
    command = COMMANDS[name]
    parser = Parser(
        prog=f"scalesweep {name}", description=f"{command.text[0].upper()}{command.text[1:]}.",
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.add(parser)
    examples = "\n".join(f"  {example}" for example in command.examples)
    parser.epilog = "\n\n".join(filter(None, [parser.epilog, f"examples:\n{examples}"]))
    return parser


def overview() -> str:
    """What ``scalesweep --help`` prints."""
    lines = [f"  {name:11}{command.text}" for name, command in COMMANDS.items()]
    return "\n".join(
        [f"usage: {USAGE}", "", "Scaling studies of distributed deep learning.", "", *lines, "",
         "`scalesweep COMMAND --help` explains a command; --version prints the version."]
    )  # fmt: skip
