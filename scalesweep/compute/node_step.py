"""A step of a Slurm job with one task on each of its nodes. Standard library only."""

import os

# Next to the program's own step: it may share everything with it.
_SRUN = (
    "srun", "--overlap", "--nodes={nodes}", "--ntasks={nodes}", "--ntasks-per-node=1",
    "--cpus-per-task=1", "--mem=0", "--mpi=none", "--cpu-bind=none", "--wait=0",
    "--kill-on-bad-exit=0", "--job-name={name}",
)  # fmt: skip


def on_each_node(nodes: int, name: str) -> list[str]:
    """The words before a program that is to be started once on each node of the job."""
    return [word.format(nodes=nodes, name=name) for word in _SRUN]


def is_anywhere(nodes: int) -> bool:
    """Whether a run of so many nodes is in a Slurm job of more, so that nobody knows on which."""
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or nodes) > nodes
