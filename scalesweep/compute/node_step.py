"""A step of a Slurm job with one task on each of its nodes. Standard library only."""

import os
from collections.abc import Mapping
from typing import Any

# Next to the program's own step: it may share everything with it.
_SRUN = (
    "srun", "--overlap", "--nodes={nodes}", "--ntasks={nodes}", "--ntasks-per-node=1",
    "--cpus-per-task=1", "--mem=0", "--mpi=none", "--cpu-bind=none", "--wait=0",
    "--kill-on-bad-exit=0", "--job-name={name}",
)  # fmt: skip


def on_each_node(nodes: int, name: str) -> list[str]:
    """The words before a program that is to be started once on each node of the job."""
    return [word.format(nodes=nodes, name=name) for word in _SRUN]


def is_anywhere(params: Mapping[str, Any]) -> bool:
    """Whether a run of these parameters is in a Slurm job of more nodes than it takes, so that
    nobody knows on which it is."""
    nodes = -(-int(params["ranks"]) // int(params["ranks_per_node"]))
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or nodes) > nodes
