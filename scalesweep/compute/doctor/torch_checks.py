"""What the doctor makes of PyTorch: its build, and what its two ranks say of their exchange.

Standard library only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.compute.doctor.checks import FAILED, OK, WARNING, Check
from scalesweep.compute.doctor.packages import absent, built_with, python_text

PYTORCH = "PyTorch"
Facts = Mapping[str, Any]


def judge_build(facts: Facts, gpus_per_node: int, site_file: str) -> Check:
    """Whether PyTorch can be imported, has what ranks exchange data through, and sees the GPUs."""
    if facts["wrong"].get("torch") or not facts["torch"]:
        check = absent(PYTORCH, facts["wrong"].get("torch", ""), site_file)
        return check._replace(detail=f"{facts['executable']}: {check.detail}")
    built = facts["torch_build"]
    detail = f"{facts['torch']} in Python {python_text(facts)}; {built_with(built)}"
    cuda, gpus = built["cuda"], built["gpus"]
    detail += f"; CUDA {cuda}, {gpus} GPU{'' if gpus == 1 else 's'}" if cuda else "; without CUDA"
    another = f"name a Python with another PyTorch in {site_file} (python, prologue)"
    if not built["gloo"]:
        lacks = "Gloo" if built["distributed"] else "torch.distributed"
        return Check(PYTORCH, FAILED, f"{detail}; {lacks} is missing: ranks cannot meet", another)
    if not facts["numpy"]:
        mend = f"install numpy for {facts['executable']}"
        return Check(PYTORCH, FAILED, f"{detail}; scalesweep's benchmarks need NumPy", mend)
    return _judge_gpus(Check(PYTORCH, OK, detail, another), built, gpus_per_node, site_file)


def _judge_gpus(check: Check, built: Facts, gpus_per_node: int, site_file: str) -> Check:
    """The check of a build that can do without GPUs, where the site says how many there are.

    ``check.mend`` names another build.
    """
    cuda, gpus = built["cuda"], built["gpus"]
    if gpus >= gpus_per_node and (built["nccl"] or not gpus):
        return check._replace(mend="")
    if gpus and not built["nccl"]:
        detail = f"{check.detail}; ranks on GPUs exchange data through NCCL alone"
        return check._replace(state=FAILED, detail=detail)
    wanted = f"{check.detail}; {site_file} says {gpus_per_node} GPUs on each node"
    if not cuda:
        return check._replace(state=FAILED, detail=f"{wanted}: runs would be on CPUs")
    if not gpus:
        mend = f"see whether a job sees GPUs (nvidia-smi) with a driver for CUDA {cuda}"
        return Check(PYTORCH, FAILED, f"{wanted}: runs would be on CPUs", mend)
    mend = f"see whether jobs get all of them (slurm.gres in {site_file})"
    return Check(PYTORCH, WARNING, wanted, mend)


def judge_ranks(facts: Sequence[Facts], ranks: int) -> str:
    """Why ranks of PyTorch did not come about; empty where none has said so.

    A rank that another one waits for may not have started: what each says names it.
    """
    if errors := [fact["torch_error"] for fact in facts if "torch_error" in fact]:
        said = "; ".join(dict.fromkeys(filter(None, errors))) or "they say nothing"
        return f"{len(facts)} of {ranks} ranks started, PyTorch failed: {said}"
    exchanges = [fact["torch"] for fact in facts if "torch" in fact]
    if len(exchanges) < ranks:
        return ""
    for exchange in exchanges:
        if exchange["size"] != ranks:
            return (
                f"{ranks} processes started, each alone: PyTorch counts {exchange['size']} "
                "rank(s); the launcher sets no variable that says which rank a process is"
            )
    return next(filter(None, (_judge_exchange(exchange, ranks) for exchange in exchanges)), "")


def _judge_exchange(exchange: Facts, ranks: int) -> str:
    """Why what a rank has of the others is not what they sent; empty if it is."""
    total, order = float(sum(range(1, ranks + 1))), list(range(ranks))
    if exchange["sum"] == total and exchange["order"] == order:
        return ""
    came, sent = (", ".join(f"{number:g}" for number in every)
                  for every in (exchange["order"], order))  # fmt: skip
    return (
        f"wrong result of an exchange over {exchange['on']}: on rank {exchange['rank']} the sum is "
        f"{exchange['sum']:g} for {total:g}, and {came} came from ranks {sent}"
    )
