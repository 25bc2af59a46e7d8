"""Options of sbatch that a site adds (``slurm: {extra: [...]}``), beside those of scalesweep.

What a user says and what scalesweep needs are both asked of Slurm (``split_extra``); options that
say what a run is, or by which scalesweep knows its jobs, are refused by name.
"""

from collections.abc import Sequence
from typing import NamedTuple

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
# Those that stand instead of scalesweep's.
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


def no_extra(word: str) -> str | None:
    """Why a site must not add an option; None if it may."""
    name, _, value = word.removeprefix("--").partition("=")
    if name in _INSTEAD:
        instead = _INSTEAD[name]
        mend = f"write {instead}" if instead else "scalesweep sets it, to know its jobs"
        return f"{word}: must not be set here: {mend}"
    if name in ("exclude", "dependency") and not value:
        return f"{word}: write --{name}=..."
    if name == "dependency" and "?" in value:
        return f"{word}: all dependencies must hold, and '?' is any; separate them with commas"
    return None


def split_extra(extra: Sequence[str]) -> Extra:
    """The options of a site by what becomes of them."""
    given = [(word, *word.removeprefix("--").partition("=")[::2]) for word in extra]
    kept = {"exclude", "dependency", *_REPLACED}
    return Extra(
        tuple(value for _, name, value in given if name == "exclude"),
        tuple(value for _, name, value in given if name == "dependency"),
        {_REPLACED[name]: word for word, name, _ in given if name in _REPLACED},
        tuple(word for word, name, _ in given if name not in kept),
    )
