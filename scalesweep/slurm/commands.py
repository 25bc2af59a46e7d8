"""What the cluster offers and what is in its queue: sinfo, squeue and sbatch --test-only."""

import getpass
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scalesweep.core.errors import UserError, choices

COMMANDS = ("sbatch", "squeue", "sinfo", "srun")
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job of ours that is queued or running; ``session`` is the Snakemake call it belongs to."""

    job_id: int
    state: str
    session: str
    comment: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition: its limit in minutes (None: no limit) and the features its nodes offer."""

    name: str
    default: bool
    limit_minutes: float | None
    features: frozenset[str]


def check_commands() -> None:
    """Raise UserError if a command of Slurm's is missing."""
    for command in COMMANDS:
        if shutil.which(command) is None:
            raise UserError(
                f"{command} not found on this machine: run snakemake where Slurm's commands are "
                "(a login node), or leave out --profile slurm to run here"
            )


def ask(*words: str) -> str:
    """Output of one of Slurm's commands; raises UserError with its first line of complaint."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise UserError(f"{words[0]} not found on this machine") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{words[0]} did not answer within {_TIMEOUT_S} s") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        first = said[0].removeprefix(f"{words[0]}: ") if said else f"exit code {done.returncode}"
        raise UserError(f"{words[0]}: {first}")
    return done.stdout


def default_account() -> str:
    """The account that Slurm takes if none is asked for; empty where it keeps no accounts."""
    try:
        text = ask("sacctmgr", "-nP", "show", "user", getpass.getuser(), "format=defaultaccount")
    except UserError:
        return ""
    return text.strip()


def job_comment(rule: str, *wildcards: str) -> str:
    """The comment that Snakemake's Slurm plugin gives to the job of a rule."""
    return f"rule_{rule}_wildcards_{joined(*wildcards)}"


def joined(*wildcards: str) -> str:
    """Wildcards as the plugin writes them in comments and in the names of log folders."""
    return "_".join(wildcards).replace("/", "_")


def live_jobs(folder: Path) -> list[LiveJob]:
    """Our jobs in the queue that were submitted from ``folder``; raises UserError."""
    # The folder and the comment may hold any character but a line break; neither is cut.
    form = "%A|%T|%j|%Z|%k"
    text = ask("squeue", "--noheader", f"--user={getpass.getuser()}", f"--format={form}")
    return parse_queue(text, str(folder))


def parse_queue(text: str, folder: str) -> list[LiveJob]:
    """Jobs of ``squeue --format=%A|%T|%j|%Z|%k`` whose working folder is ``folder``."""
    jobs = []
    for line in text.splitlines():
        # A folder may hold a "|": it is compared as a whole.
        match = re.fullmatch(r"(\d{1,18})\|([^|]*)\|([^|]*)\|(.*)", line, re.ASCII)
        if match and match[4].startswith(f"{folder}|"):
            comment = match[4].removeprefix(f"{folder}|")
            jobs.append(LiveJob(int(match[1]), match[2], match[3], comment))
    return jobs


def partitions() -> dict[str, Partition]:
    """Partitions by name; raises UserError."""
    return parse_partitions(ask("sinfo", "--noheader", "--format=%P|%l|%f"))


def parse_partitions(text: str) -> dict[str, Partition]:
    """Partitions of ``sinfo --format=%P|%l|%f`` (one line per group of like nodes)."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        limit, _, features = rest.partition("|")
        default, name = name.endswith("*"), name.removesuffix("*")
        known = found[name].features if name in found else frozenset()
        offered = {feature for feature in features.split(",") if feature not in ("", "(null)")}
        found[name] = Partition(name, default, minutes_of(limit), known | offered)
    return found


def minutes_of(limit: str) -> float | None:
    """Minutes of a limit as Slurm prints it (``[days-][hours:]minutes:seconds``)."""
    match = re.fullmatch(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})", limit)
    if match is None:
        return None  # infinite, n/a
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return (days * 24 + hours) * 60 + minutes + seconds / 60


def check_names(partition: str, constraints: Iterable[str], minutes: int, where: str) -> None:
    """Raise UserError for what Slurm would refuse in fewer words, or let wait for ever.

    That is: a partition that is not there, a feature that no node of it offers, a limit above the
    partition's. ``where`` starts the error. Without a partition the cluster's default one counts.
    """
    known = partitions()
    if partition and partition not in known:
        raise UserError(
            f"{where}.partition: no partition {partition!r} here; " + choices(partition, known)
        )
    asked = [p for p in known.values() if p.name == partition or (not partition and p.default)]
    for one in asked:
        if one.limit_minutes is not None and minutes > one.limit_minutes:
            raise UserError(
                f"{where}: a job requests {minutes} min, partition {one.name} allows "
                f"{one.limit_minutes:g}; lower time_limit_minutes or name another partition"
            )
    offered = frozenset[str]().union(*(p.features for p in asked or known.values()))
    for constraint in constraints:
        for feature in re.findall(r"[A-Za-z_][\w.:-]*", constraint):
            if feature not in offered:
                raise UserError(
                    f"{where}: constraint {constraint!r}: no node"
                    f"{f' of partition {partition}' if partition else ''} offers {feature!r}; "
                    f"offered: {', '.join(sorted(offered)) or 'none'}"
                )


def refusal(words: Sequence[str]) -> str | None:
    """What Slurm has against a request (options of sbatch), or None if it would take it."""
    try:
        ask("sbatch", "--test-only", *words, "--output=/dev/null", "--wrap=true")
    except UserError as error:
        text = str(error).removeprefix("sbatch: ").removeprefix("error: ")
        return re.sub(r"^allocation failure: ", "", text)
    return None
