"""The doctor's two ranks, through the site's launcher: do they know of each other, where are they.

Standard library only.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalesweep.compute.doctor import programs
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check, Checks
from scalesweep.compute.doctor.order import TORCH, DoctorOrder, Part, needs_of, suffix
from scalesweep.compute.doctor.torch_checks import judge_ranks
from scalesweep.core.host import cpu_set

LAUNCHER, BINDING = "launcher", "core binding"
RANKS = 2

Facts = Mapping[str, Any]


def names(needs: str, all_needs: Iterable[str]) -> tuple[str, ...]:
    """The checks of the ranks of a part, beside those of the others."""
    end = suffix(needs, all_needs)
    return (f"{LAUNCHER}{end}", f"{BINDING}{end}")


def examine(order: DoctorOrder, part: Part) -> Checks:
    """The outcomes of ``names``."""
    launcher, binding = names(part["needs"], needs_of(order["parts"]))
    said = programs.run(part["ranks"])
    wrong = judge(said)
    site_file = order["site_file"]
    if wrong:
        state = FAILED if part["needs_ranks"] else WARNING
        words = " ".join(part["ranks"]["argv"][:4])
        mend = f"correct {part['launch']} in {site_file} (it starts {words} ...)"
        if part["needs"] == TORCH and len(said.facts) == RANKS:
            mend += ", or name the network of the ranks in env (GLOO_SOCKET_IFNAME)"
        yield Check(launcher, state, wrong, mend)
    else:
        yield Check(launcher, OK, _layout_text(said.facts))
    bound = judge_binding(said.facts, part["cpus_per_rank"], site_file)
    yield bound._replace(name=binding)


def judge(said: programs.Said) -> str:
    """Why two ranks did not come about; empty if they did."""
    facts = said.facts
    if failed := judge_ranks(facts, RANKS) or said.wrong:
        return failed
    if len(facts) != RANKS:
        return f"{len(facts)} of {RANKS} ranks started"
    for fact in facts:
        if "horovod_error" in fact:
            return f"{RANKS} ranks started, Horovod failed: {fact['horovod_error']}"
        horovod = fact.get("horovod")
        if horovod and (horovod["size"], horovod["sum"]) != (RANKS, float(RANKS)):
            return (
                f"{RANKS} processes started, each alone: Horovod counts {horovod['size']} rank(s) "
                f"over {horovod['on']}; launcher and MPI (--mpi=...) do not fit"
            )
    numbers = sorted(fact["rank"] for fact in facts if fact["rank"] is not None)
    if not {"horovod", "torch"} & facts[0].keys() and numbers and numbers != list(range(RANKS)):
        return (
            f"{RANKS} processes started, each as rank {numbers[0]}: the launcher started each alone"
        )
    return ""


def _layout_text(facts: Sequence[Facts]) -> str:
    hosts = sorted({fact["host"] for fact in facts})
    where = f"{RANKS} ranks on {', '.join(hosts)}"
    if "horovod" in facts[0]:
        return f"{where} exchange data through Horovod over {facts[0]['horovod']['on']}"
    if "torch" in facts[0]:
        return f"{where} exchange data through torch.distributed over {facts[0]['torch']['on']}"
    if any(fact["rank"] is None for fact in facts):
        return f"{where} started (their variables name no rank)"
    return f"{where} started"


def judge_binding(facts: Sequence[Facts], asked: int | None, site_file: str) -> Check:
    """Whether each rank has the CPUs that the launcher asks for, and to itself."""
    if len(facts) < RANKS:
        return Check(BINDING, SKIPPED, f"needs {LAUNCHER}")
    cpu_sets = "; ".join(
        f"{len(f['cpus'])} CPUs ({cpu_set(set(f['cpus']))}) on {f['host']}" for f in facts
    )
    if asked is None:
        return Check(BINDING, OK, f"none asked for (no {{cpus_per_rank}} in launch): {cpu_sets}")
    first, other = facts[:RANKS]
    shared = set(first["cpus"]) & set(other["cpus"]) if first["host"] == other["host"] else set()
    least = min(len(fact["cpus"]) for fact in facts)
    if least < asked:
        mend = f"correct cores_per_node in {site_file}, or what Slurm binds tasks to (TaskPlugin)"
        return Check(BINDING, WARNING, f"{asked} CPUs per rank asked for: {cpu_sets}", mend)
    if shared:
        mend = f"bind ranks in launch of {site_file}: --cpu-bind=cores, or mpirun --bind-to core"
        return Check(BINDING, WARNING, f"ranks share CPUs {cpu_set(shared)}: {cpu_sets}", mend)
    return Check(BINDING, OK, f"{asked} CPUs per rank asked for: {cpu_sets}")
