"""Run, plan or report on a campaign: prints the line that calls Snakemake, and calls it."""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.paths import PROFILES, SNAKEFILE
from scalesweep.smk.campaign_args import campaign_path
from scalesweep.smk.config_keys import OVERRIDES
from scalesweep.smk.context import FIRST, LAST, LATER, ROUND
from scalesweep.smk.snakemake_facts import setting


def run(args: argparse.Namespace) -> NoReturn:
    """Call Snakemake, once the Slurm jobs of earlier calls are over; for a run again as long as
    what was measured asks for more runs. Exits with 1 if any run failed in any call."""
    words = words_of(args)
    if args.command != "run":
        sys.exit(call(words))
    from scalesweep.adaptive.again import measure_again  # here, as a plan needs none of it
    from scalesweep.adaptive.policy import new_runs
    from scalesweep.slurm.commands import await_jobs
    from scalesweep.smk.campaign_args import open_plan

    plan, failed, round_ = open_plan(args), False, FIRST
    if args.again:
        print(measure_again(plan.campaign, args.again, args.dry_run), file=sys.stderr)
        plan = open_plan(args)
    if args.dry_run:  # of runs to be measured again Snakemake still finds the records
        sys.exit(0 if args.again else call(words))
    slurm = Path(args.profile or "").name == "slurm"
    left = new_runs(plan)
    more = plan.grows and not vars(args)["try"]
    while more:
        if slurm:
            await_jobs(plan.campaign.runs_folder)
        # Only the runs, and what follows from them: the report is made once.
        code = call(["snakemake", "block", *words[1:]], round_)
        plan = open_plan(args)
        before, left, failed, round_ = left, new_runs(plan), failed or code == 1, LATER
        more = left not in (set(), before)
        if code not in (0, 1) or (code and left and not more):
            sys.exit(code)
    if slurm:
        await_jobs(plan.campaign.runs_folder)
    sys.exit(call(words, "" if round_ == FIRST else LAST) or int(failed))


def call(words: Sequence[str], round_: str = "") -> int:
    """Exit code of a call of Snakemake. It is told of SIGTERM, all that it has started too of
    Ctrl-C and of a terminal that is closed; each ends this process once it has ended."""
    print(f"+ {shlex.join(words)}", file=sys.stderr, flush=True)
    environment = {**os.environ, ROUND: round_}
    stopped: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopped.append(number)
        with contextlib.suppress(ProcessLookupError):
            (os.kill if number == signal.SIGTERM else os.killpg)(process.pid, number)

    def begin() -> None:
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell's background job ignores

    # In a process group of its own: a terminal would send it Ctrl-C as well, and twice is too much.
    command = [sys.executable, "-m", *words]
    process = subprocess.Popen(command, env=environment, process_group=0, preexec_fn=begin)  # noqa: PLW1509
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    code = process.wait()
    for number, handler in before.items():
        signal.signal(number, handler)
    if code < 0 or stopped:
        sys.exit(code if code > 1 else 128 + (stopped[0] if stopped else -code))
    return code


def words_of(args: argparse.Namespace) -> list[str]:
    """The call of Snakemake here. Raises UserError for what belongs before ``--``."""
    if any(word.startswith(("--config", "-C", "--profile")) for word in args.words):
        raise UserError("name campaign, settings and profile before `--`, as `--help` says")
    words = ["snakemake", *_snakefile(Path.cwd())]
    if args.command != "run":
        words.append(args.command)
    if args.profile:
        here, shipped = Path(args.profile), PROFILES / args.profile
        words += ["--profile", str(shipped if shipped.is_dir() and not here.exists() else here)]
    words += [*["-n"] * args.dry_run, *args.words]
    given = {**vars(args), "profile": args.profiler}
    if args.campaign and (path := campaign_path(args.campaign)):
        words += ["--configfile", str(path)]
        del given["campaign"]
    settings = [setting(key, given[key]) for key in OVERRIDES if given.get(key) is not None]
    return [*words, "--config", *settings] if settings else words


def _snakefile(here: Path) -> list[str]:
    """``-s SNAKEFILE``, unless Snakemake finds it here, or a study's that uses it."""
    there = [it for it in (here / "Snakefile", here / "workflow" / "Snakefile") if it.is_file()]
    text = "".join(file.read_text(errors="replace") for file in there)
    return [] if "scalesweep" in text or str(SNAKEFILE) in text else ["-s", str(SNAKEFILE)]
