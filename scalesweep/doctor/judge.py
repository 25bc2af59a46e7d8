"""What the doctor makes of what two ranks say: a table of checks, each with what mends it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.core.host import cpu_set
from scalesweep.doctor.probe import HOROVOD, RANKS, TORCH, Part, Said
from scalesweep.jobs.job_requests import request_for
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import Shape
from scalesweep.state.run_state import scan

OK, WARNING, FAILED = STATES = ("ok", "warning", "failed")
_PACKAGES = {
    "tensorflow": "TensorFlow", "horovod.tensorflow": "Horovod", "torch": "PyTorch",
    "numpy": "NumPy",
}  # fmt: skip
_EXCHANGE = {HOROVOD: "Horovod", TORCH: "torch.distributed"}
# Processes at work beside a run, as a share of the CPUs, that are worth a word; one is our own.
_LOAD_SHARE, _LOAD_OWN = 0.5, 1.0

Facts = Mapping[str, Any]
Outcome = tuple[str, str, str]


class Check(NamedTuple):
    """The outcome of one check: what was found, and what to do if it is not well."""

    name: str
    state: str  # of STATES
    detail: str
    mend: str = ""


class Asked(NamedTuple):
    """What a judge looks at."""

    site: Site
    part: Part
    said: Said
    token: str

    @property
    def ranks(self) -> Sequence[Facts]:
        """What the ranks say."""
        return self.said.ranks


def judge(asked: Asked, first: bool, suffix: str = "") -> Iterator[Check]:
    """The checks of a part, with a ``suffix`` where another one has checks of these names; those of
    the machine with the ``first`` one that answers only."""
    if asked.part.lacks:
        yield Check(f"launcher{suffix}", FAILED, asked.part.lacks)
        return
    for table, names_end in ((_OF_MACHINE if first else {}, ""), (_OF_PART, suffix)):
        for name, check in table.items():
            if (asked.ranks or name == "launcher") and (outcome := check(asked)):
                yield Check(f"{name}{names_end}", *outcome)


def _judge_folder(asked: Asked) -> Outcome:
    """Whether every rank sees the results folder."""
    results = asked.part.probe["folder"].partition("/.doctor/")[0]
    for fact in asked.ranks:
        if fact.get("token") != asked.token:
            why = fact.get("folder_error") or "another folder lies there"
            move = "put results on a file system that all nodes share: --results FOLDER"
            return FAILED, f"{fact['host']} does not see {results}: {why}", move
    return OK, f"{results} is seen from {_hosts(asked.ranks)}", ""


def _judge_load(asked: Asked) -> Outcome:
    """Whether a node is at work already: the mean number of processes in the last minute."""
    busiest = max(asked.ranks, key=lambda fact: float(fact["load"][0] / fact["load"][1]))
    (load, cpus), host = busiest["load"], busiest["host"]
    detail = f"{load:.1f} processes at work in the last minute on the {cpus} CPUs of {host}"
    if load <= _LOAD_SHARE * cpus + _LOAD_OWN:
        return OK, detail, ""
    mend = "measure when the machine is quiet: what else runs there is part of every time"
    return WARNING, detail, mend


def _judge_gpus(asked: Asked) -> Outcome:
    """Whether every node shows the GPUs that the site file promises."""
    wanted, file = asked.site.gpus_per_node, asked.site.file
    for fact in asked.ranks:
        gpus, host = fact["gpus"], fact["host"]
        if isinstance(gpus, str):
            mend = "mend the driver of this node, or leave it out (slurm.extra: --exclude=NODE)"
            return FAILED if wanted else WARNING, f"{host}: {gpus}", mend
        if len(gpus) != wanted:
            mend = f"set gpus_per_node or slurm.gres in {file} to what a job gets"
            state = FAILED if len(gpus) < wanted else WARNING
            return state, f"{host} shows {len(gpus)}, {file} says {wanted}", mend
    models = sorted({name for fact in asked.ranks for name in fact["gpus"]})
    return OK, f"{wanted} on each node: {', '.join(models)}" if wanted else "none", ""


def _judge_power(asked: Asked) -> Outcome | None:
    """Whether the first node has a counter of power or energy that can be read."""
    why = asked.said.power
    if why is None:
        return None  # switched off
    mend = "reports will lack energy; docs/guide/energy.md says how counters become readable"
    return (WARNING, why, mend) if why else (OK, "can be read on the first node", "")


def _judge_software(asked: Asked) -> Outcome:
    """Whether the site's Python has what the benchmarks import, built for the site's GPUs."""
    fact, part, wanted = asked.ranks[0], asked.part, asked.site.gpus_per_node
    versions = [f"{_PACKAGES[name]} {version}" for name, version in fact["versions"].items()]
    detail = ", ".join([fact["python"], *versions])
    mend = f"install it for this Python, or name another in {asked.site.file} (python, prologue)"
    for name, why in fact["wrong"].items() if part.needs else ():
        gone = why.startswith(("ModuleNotFoundError", "ImportError: No module"))
        return FAILED, f"{detail}; {_PACKAGES[name]}: {'not installed' if gone else why}", mend
    exchange, hidden = fact.get("exchange"), "CUDA_VISIBLE_DEVICES" in part.probe["env"]
    if not exchange or not wanted or hidden:
        return OK, detail, ""
    if (gpus := exchange["gpus"]) < wanted:
        detail += f"; it uses {gpus} GPUs, {asked.site.file} says {wanted} on each node"
        return WARNING if gpus else FAILED, detail, f"see that jobs get all GPUs, or {mend}"
    if not exchange["nccl"]:  # slow, but not wrong
        return WARNING, f"{detail}; built without NCCL: gradients go over the host", mend
    return OK, detail, ""


def _judge_launcher(asked: Asked) -> Outcome | None:
    """Whether two ranks came about that know of each other."""
    ranks, part = asked.ranks, asked.part
    if any(fact["wrong"] for fact in ranks) and part.needs:
        return None  # said by the check of the software
    if wrong := _why_alone(asked):
        words = " ".join(part.probe["argv"][:4])
        mend = f"correct {part.launch} (it starts {words} ...), python, prologue or env"
        return FAILED if part.needs_ranks else WARNING, wrong, f"{mend} in {asked.site.file}"
    how = "started"
    if part.needs:
        how = f"exchange data through {_EXCHANGE[part.needs]} over {ranks[0]['exchange']['on']}"
    return OK, f"{RANKS} ranks on {_hosts(ranks)} {how}", ""


def _why_alone(asked: Asked) -> str:
    """Why two ranks did not come about; empty if they did."""
    ranks = asked.ranks
    errors = dict.fromkeys(f["exchange_error"] for f in ranks if "exchange_error" in f)
    if errors or asked.said.wrong:
        why = "; ".join(errors) or asked.said.wrong
        return f"{len(ranks)} of {RANKS} ranks answer: {why}" if ranks else why
    if len(ranks) != RANKS:
        return f"{len(ranks)} of {RANKS} ranks started"
    for exchange in [fact["exchange"] for fact in ranks if "exchange" in fact]:
        if exchange["size"] != RANKS:
            return f"{RANKS} processes started, each alone: launcher and MPI (--mpi=...) do not fit"
        if exchange["sum"] != sum(range(1, RANKS + 1)):
            return f"wrong result of an exchange over {exchange['on']}: {exchange['sum']:g} for 3"
    numbers = sorted(fact["rank"] for fact in ranks if fact["rank"] is not None)
    if not asked.part.needs and numbers and numbers != list(range(RANKS)):
        return f"{RANKS} processes started, each as rank {numbers[0]}: each alone"
    return ""


def _judge_binding(asked: Asked) -> Outcome | None:
    """Whether each rank has the CPUs that the launcher asks for, and to itself."""
    wanted, file = asked.part.cpus_per_rank, asked.site.file
    if len(asked.ranks) < RANKS or wanted is None:
        return None
    first, other = asked.ranks[:RANKS]
    detail = f"{wanted} CPUs per rank asked for: " + "; ".join(
        f"{len(f['cpus'])} CPUs ({cpu_set(set(f['cpus']))}) on {f['host']}" for f in (first, other)
    )
    if min(len(first["cpus"]), len(other["cpus"])) < wanted:
        mend = f"correct cores_per_node in {file}, or what Slurm binds tasks to (TaskPlugin)"
        return WARNING, detail, mend
    if first["host"] == other["host"] and set(first["cpus"]) & set(other["cpus"]):
        mend = f"bind ranks in launch of {file}: --cpu-bind=cores, or mpirun --bind-to core"
        return WARNING, f"ranks share CPUs: {detail}", mend
    return OK, detail, ""


def examine_sbatch(campaign: Campaign) -> Check:
    """``sbatch --test-only`` with the campaign's largest request."""
    site = campaign.site
    mend = f"correct slurm in {site.file}, or make the campaign's largest run smaller"
    try:
        commands.check_commands()
        shape = largest_request(campaign)
    except UserError as error:
        return Check("sbatch", FAILED, str(error), mend)
    words = " ".join(shape.sbatch_words())
    if refused := commands.refusal(shape.sbatch_words()):
        return Check("sbatch", FAILED, f"Slurm refuses sbatch {words}: {refused}", mend)
    return Check("sbatch", OK, f"Slurm accepts the largest request: {words}")


def largest_request(campaign: Campaign) -> Shape:
    """The request of the campaign's run that takes most nodes, ranks and time. Raises UserError."""
    runs = campaign.unique_runs()
    estimates = Estimates(campaign, scan(campaign.runs_folder, runs))
    # One run of each point: its repeats request the same.
    first = {id(run.point): (experiment, run) for experiment, run in runs.values()}
    shapes = [
        request_for(campaign, experiment, run, estimates).shape
        for experiment, run in first.values()
    ]
    return max(shapes, key=lambda shape: (shape.nodes, shape.tasks, shape.minutes))


def _hosts(ranks: Sequence[Facts]) -> str:
    return ", ".join(sorted({fact["host"] for fact in ranks}))


_OF_MACHINE: Mapping[str, Callable[[Asked], Outcome | None]] = {
    "results folder": _judge_folder,
    "load": _judge_load,
    "GPUs": _judge_gpus,
    "power counters": _judge_power,
}
_OF_PART: Mapping[str, Callable[[Asked], Outcome | None]] = {
    "software": _judge_software,
    "launcher": _judge_launcher,
    "core binding": _judge_binding,
}
