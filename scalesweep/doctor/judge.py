"""What the doctor makes of what two ranks say: checks, each with what mends it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.host import cpu_set
from scalesweep.doctor.probe import HOROVOD, RANKS, TORCH, Part, Said
from scalesweep.jobs.job_requests import request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands
from scalesweep.state.run_state import scan

OK, WARNING, FAILED = STATES = ("ok", "warning", "failed")
_PACKAGES = {
    "tensorflow": "TensorFlow", "horovod.tensorflow": "Horovod", "torch": "PyTorch",
    "numpy": "NumPy",
}  # fmt: skip
_EXCHANGE = {HOROVOD: "Horovod", TORCH: "torch.distributed"}

Facts = Mapping[str, Any]


class Check(NamedTuple):
    """The outcome of one check: what was found, and what to do if it is not well."""

    name: str
    state: str  # of STATES
    detail: str
    mend: str = ""


def judge(site: Site, part: Part, said: Said, token: str, first: bool) -> Iterator[Check]:
    """The checks of a part; those of the machine with the ``first`` one only."""
    suffix = "" if first else f" ({part.needs})"
    if part.lacks:
        yield Check(f"launcher{suffix}", FAILED, part.lacks)
        return
    ranks = said.ranks
    if ranks and first:
        yield _judge_folder(ranks, part.probe["folder"].partition("/.doctor/")[0], token)
        yield _judge_gpus(ranks, site)
    if ranks:
        yield _judge_software(f"software{suffix}", ranks[0], part, site)
    if not (part.needs and any(fact["wrong"] for fact in ranks)):  # else the software says it
        yield _judge_launcher(f"launcher{suffix}", part, said, site)
    if len(ranks) == RANKS and part.cpus_per_rank is not None:
        yield _judge_binding(f"core binding{suffix}", ranks, part.cpus_per_rank, site)


def _judge_folder(ranks: Sequence[Facts], results: str, token: str) -> Check:
    """Whether every rank sees the results folder."""
    for fact in ranks:
        if fact.get("token") != token:
            why = fact.get("folder_error") or "another folder lies there"
            move = "put results on a file system that all nodes share: --results FOLDER"
            blind = f"{fact['host']} does not see {results}: {why}"
            return Check("results folder", FAILED, blind, move)
    return Check("results folder", OK, f"{results} is seen from {_hosts(ranks)}")


def _judge_gpus(ranks: Sequence[Facts], site: Site) -> Check:
    """Whether every node shows the GPUs that the site file promises."""
    wanted, file = site.gpus_per_node, site.file
    for fact in ranks:
        gpus, host = fact["gpus"], fact["host"]
        if isinstance(gpus, str):
            mend = "fix the driver of this node, or leave it out (slurm.extra: --exclude=NODE)"
            return Check("GPUs", FAILED if wanted else WARNING, f"{host}: {gpus}", mend)
        if len(gpus) != wanted:
            mend = f"set gpus_per_node or slurm.gres in {file} to what a job gets"
            state = FAILED if len(gpus) < wanted else WARNING
            return Check("GPUs", state, f"{host} shows {len(gpus)}, {file} says {wanted}", mend)
    models = ", ".join(sorted({name for fact in ranks for name in fact["gpus"]}))
    return Check("GPUs", OK, f"{wanted} on each node: {models}" if wanted else "none")


def _judge_software(name: str, fact: Facts, part: Part, site: Site) -> Check:
    """Whether the site's Python has what the benchmarks import, built for the site's GPUs."""
    versions = [f"{_PACKAGES[name]} {version}" for name, version in fact["versions"].items()]
    detail = ", ".join([fact["python"], *versions])
    mend = f"install it for this Python, or name another in {site.file} (python, prologue)"
    for package, why in fact["wrong"].items() if part.needs else ():
        gone = why.startswith(("ModuleNotFoundError", "ImportError: No module"))
        lost = f"{_PACKAGES[package]}: {'not installed' if gone else why}"
        return Check(name, FAILED, f"{detail}; {lost}", mend)
    exchange, hidden = fact.get("exchange"), "CUDA_VISIBLE_DEVICES" in part.probe["env"]
    if not exchange or not site.gpus_per_node or hidden:
        return Check(name, OK, detail)
    if (gpus := exchange["gpus"]) < site.gpus_per_node:
        detail += f"; it uses {gpus} GPUs, {site.file} says {site.gpus_per_node} on each node"
        more = f"see that jobs get all GPUs, or {mend}"
        return Check(name, WARNING if gpus else FAILED, detail, more)
    if not exchange["nccl"]:  # slow, but not wrong
        detail += "; built without NCCL: gradients go over the host"
        return Check(name, WARNING, detail, mend)
    return Check(name, OK, detail)


def _judge_launcher(name: str, part: Part, said: Said, site: Site) -> Check:
    """Whether two ranks came about that know of each other."""
    if wrong := _why_alone(part, said):
        words = " ".join(part.probe["argv"][:4])
        mend = f"correct launch (it starts {words} ...), python, prologue or env in {site.file}"
        return Check(name, FAILED if part.needs_ranks else WARNING, wrong, mend)
    how = "started"
    if part.needs:
        over = said.ranks[0]["exchange"]["on"]
        how = f"exchange data through {_EXCHANGE[part.needs]} over {over}"
    return Check(name, OK, f"{RANKS} ranks on {_hosts(said.ranks)} {how}")


def _why_alone(part: Part, said: Said) -> str:
    """Why two ranks did not come about; empty if they did."""
    ranks = said.ranks
    errors = dict.fromkeys(f["exchange_error"] for f in ranks if "exchange_error" in f)
    if errors or said.wrong:
        why = "; ".join(errors) or said.wrong
        return f"{len(ranks)} of {RANKS} ranks answer: {why}" if ranks else why
    if len(ranks) != RANKS:
        return f"{len(ranks)} of {RANKS} ranks started"
    for exchange in [fact["exchange"] for fact in ranks if "exchange" in fact]:
        if exchange["size"] != RANKS:
            return f"{RANKS} processes started, each alone: launcher and MPI (--mpi=...) do not fit"
        if exchange["sum"] != sum(range(1, RANKS + 1)):
            return f"wrong result of an exchange over {exchange['on']}: {exchange['sum']:g} for 3"
    numbers = sorted(fact["rank"] for fact in ranks if fact["rank"] is not None)
    if not part.needs and numbers and numbers != list(range(RANKS)):
        return f"{RANKS} processes started, each as rank {numbers[0]}: each alone"
    return ""


def _judge_binding(name: str, ranks: Sequence[Facts], wanted: int, site: Site) -> Check:
    """Whether each rank has the CPUs that the launcher asks for, and to itself."""
    file, (first, other) = site.file, ranks
    detail = f"{wanted} CPUs per rank asked for: " + "; ".join(
        f"{len(f['cpus'])} CPUs ({cpu_set(set(f['cpus']))}) on {f['host']}" for f in ranks
    )
    if min(len(first["cpus"]), len(other["cpus"])) < wanted:
        mend = f"correct cores_per_node in {file}, or what Slurm binds tasks to (TaskPlugin)"
        return Check(name, WARNING, detail, mend)
    if first["host"] == other["host"] and set(first["cpus"]) & set(other["cpus"]):
        mend = f"bind ranks in launch of {file}: --cpu-bind=cores, or mpirun --bind-to core"
        return Check(name, WARNING, f"ranks share CPUs: {detail}", mend)
    return Check(name, OK, detail)


def examine_sbatch(campaign: Campaign) -> Check:
    """``sbatch --test-only`` with the request of the run that takes most nodes, ranks and time."""
    mend = f"correct slurm in {campaign.site.file}, or make the campaign's largest run smaller"
    runs = campaign.unique_runs()
    estimates = Estimates(campaign, scan(campaign.runs_folder, runs))
    # One run of each point: its repeats request the same.
    first = {id(run.point): (experiment, run) for experiment, run in runs.values()}
    try:
        commands.check_commands()
        shapes = [request_for(campaign, *planned, estimates).shape for planned in first.values()]
    except UserError as error:
        return Check("sbatch", FAILED, str(error), mend)
    request = max(shapes, key=lambda shape: (shape.nodes, shape.tasks, shape.minutes))
    words = request.sbatch_words()
    if refused := commands.refusal(words):
        return Check("sbatch", FAILED, f"Slurm refuses sbatch {' '.join(words)}: {refused}", mend)
    return Check("sbatch", OK, f"Slurm accepts the largest request: {' '.join(words)}")


def _hosts(ranks: Sequence[Facts]) -> str:
    return ", ".join(sorted({fact["host"] for fact in ranks}))
