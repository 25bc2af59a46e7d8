"""Options of sbatch that a site adds (``slurm: {extra: [...]}``), beside those of scalesweep.

What a user says and what scalesweep needs are both asked of Slurm (``split_extra``); options that
say what a run is, or by which scalesweep knows its jobs, are refused by name.
"""

from collections.abc import Sequence
from typing import NamedTuple

from scalesweep.core.errors import UserError

# Option -> where to say that instead; empty: nowhere, it is how scalesweep knows its jobs.
_INSTEAD = {
    "account": "slurm.account", "partition": "slurm.partition", "qos": "slurm.qos",
    "constraint": "slurm.constraint", "gres": "slurm.gres", "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node", "nodes": "ranks_per_node", "ntasks": "ranks",
    "ntasks-per-node": "ranks_per_node", "ntasks-per-gpu": "gpus_per_node",
    "cpus-per-task": "cores_per_node", "cpus-per-gpu": "cores_per_node",
    "time": "time_limit_minutes",
    "mem": "memory_gib_per_rank", "mem-per-cpu": "memory_gib_per_rank",
    "job-name": "", "output": "", "error": "", "comment": "", "export": "", "chdir": "",
    "parsable": "", "wrap": "", "array": "", "test-only": "", "wait": "", "clusters": "",
    "hold": "",
}  # fmt: skip
# Those that both may say: what the user says is added to, or stands instead of, scalesweep's.
EXCLUDE, DEPENDENCY = "exclude", "dependency"
_REPLACED = {
    "requeue": "requeue", "no-requeue": "requeue", "exclusive": "exclusive",
    "gpus-per-node": "gpus-per-node", "reservation": "reservation",
}  # fmt: skip


class Extra(NamedTuple):
    """The options of a site: nodes to leave out, dependencies, what takes the place of which of
    scalesweep's own (by kind), and all others, as they are written."""

    exclude: tuple[str, ...]
    dependency: tuple[str, ...]
    instead: dict[str, str]
    others: tuple[str, ...]


def check_extra(extra: Sequence[str], where: str, reservation: str = "") -> None:
    """Raise UserError for an option of sbatch that a site must not add. ``where`` starts it."""
    kinds: dict[str, str] = {}
    for word in extra:
        name, _, value = word.removeprefix("--").partition("=")
        known = (*_INSTEAD, *_REPLACED, EXCLUDE, DEPENDENCY)
        whole = [option for option in known if option.startswith(name)]
        kind, fault = _REPLACED.get(name), None
        if name in _INSTEAD:
            instead = _INSTEAD[name]
            mend = f"write {instead}" if instead else "scalesweep sets it, to know its jobs"
            fault = f"must not be set here: {mend}"
        elif name not in known and whole:
            fault = f"write the option in full: --{whole[0]}"
        elif name in (EXCLUDE, DEPENDENCY) and not value:
            fault = f"write --{name}=..."
        elif name == DEPENDENCY and "?" in value:
            fault = (
                "'?' (any of them) cannot be joined with the dependencies of scalesweep, all of "
                "which must hold; separate them with commas"
            )
        elif kind and kinds.setdefault(kind, word) != word:
            fault = f"{kinds[kind]} is there too; allowed: one of the two"
        elif kind == "reservation" and reservation:
            fault = f"slurm.reservation says {reservation!r} already"
        if fault:
            raise UserError(f"{where}: {word}: {fault}")


def split_extra(extra: Sequence[str]) -> Extra:
    """The options of a site by what becomes of them."""
    exclude: list[str] = []
    dependency: list[str] = []
    instead: dict[str, str] = {}
    others: list[str] = []
    for word in extra:
        name, _, value = word.removeprefix("--").partition("=")
        if name == EXCLUDE:
            exclude.append(value)
        elif name == DEPENDENCY:
            dependency.append(value)
        elif name in _REPLACED:
            instead[_REPLACED[name]] = word
        else:
            others.append(word)
    return Extra(tuple(exclude), tuple(dependency), instead, tuple(others))
