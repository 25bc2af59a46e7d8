"""A run on some nodes of its Slurm job, where others are measured on the rest.

Its steps are those of ``srun``, which takes the names of the nodes. Standard library only.
"""

from collections.abc import Sequence
from pathlib import Path

from scalesweep.compute.job_spec import Order


def starts_srun(words: Sequence[str]) -> bool:
    """Whether a launcher's words start a step of Slurm's, which can be given its nodes."""
    return any(map(_is_srun, words))


def on_nodes(words: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """The words of a command whose first ``srun`` takes these nodes; all as they are without."""
    place = next((place for place, word in enumerate(words) if _is_srun(word)), None)
    if place is None or not hosts:
        return list(words)
    return [*words[: place + 1], f"--nodelist={','.join(hosts)}", *words[place + 1 :]]


def placed(order: Order, hosts: Sequence[str]) -> Order:
    """The order of a run that has these nodes of its job to itself; of all where none is named."""
    if not hosts:
        return order
    on_hosts: Order = {**order, "hosts": list(hosts), "argv": on_nodes(order["argv"], hosts)}
    if "canary" in order:
        canary = order["canary"]
        on_hosts["canary"] = {**canary, "argv": on_nodes(canary["argv"], hosts)}
    return on_hosts


def _is_srun(word: str) -> bool:
    return Path(word).name == "srun"
