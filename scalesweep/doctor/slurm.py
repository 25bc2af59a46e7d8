"""What Slurm says without a job: its launcher's plugins, and whether it would take the requests."""

import re
import subprocess

from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check, Checks
from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.jobs.job_requests import request_for
from scalesweep.jobs.node_faults import NODES, NodeFaults
from scalesweep.jobs.runtime_estimates import Estimates
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import Shape, of_slurm
from scalesweep.state.run_state import scan

SRUN, SBATCH, AVOIDED = "srun and PMIx", "sbatch", "nodes of earlier jobs"
_TIMEOUT_S = 15


def examine_srun(site: Site, cluster: bool) -> Checks:
    """Whether srun is there, with the MPI plugin that ``launch`` asks for."""
    every = [site.launch_for(name) for name in (None, *site.frameworks)]
    words = [word for launch in every for part in launch.values() for word in part]
    if not cluster and "srun" not in words:
        yield Check(SRUN, SKIPPED, f"neither launch of {site.file} nor --profile slurm uses srun")
        return
    asked = sorted({word.partition("=")[2] for word in words if word.startswith("--mpi=")})
    try:
        done = subprocess.run(
            ["srun", "--mpi=list"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        yield Check(SRUN, FAILED, "srun: not found on this machine", _elsewhere(site))
        return
    except subprocess.TimeoutExpired:
        detail = f"srun --mpi=list: no answer within {_TIMEOUT_S} s"
        yield Check(SRUN, FAILED, detail, "ask whether slurmctld is up: scontrol ping")
        return
    offered = mpi_types(done.stdout + done.stderr)
    if done.returncode or not offered:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        yield Check(SRUN, FAILED, f"srun --mpi=list: {said[-1].strip()}", _elsewhere(site))
        return
    listed = ", ".join(offered)
    for kind in asked:
        if kind not in offered:
            mend = f"install Slurm's plugin for {kind}, or write another --mpi=... in {site.file}"
            yield Check(SRUN, FAILED, f"launch asks for --mpi={kind}; srun offers {listed}", mend)
            return
    used = f"launch says --mpi={', '.join(asked)}" if asked else "launch names no --mpi"
    if "pmix" not in offered and not asked:
        mend = "MPI programs need a plugin that their MPI knows (pmix): name one in launch"
        yield Check(SRUN, WARNING, f"{used}; srun offers {listed}", mend)
        return
    yield Check(SRUN, OK, f"{used}; srun offers {listed}")


def mpi_types(text: str) -> list[str]:
    """The MPI plugins that ``srun --mpi=list`` names, in the form of any version of Slurm."""
    names: list[str] = []
    for line in text.splitlines():
        rest = re.sub(r"^srun:\s*", "", line.strip())
        if " " not in rest and re.fullmatch(r"[a-z][\w.]*", rest):
            names.append(rest)
        elif ":" in rest and "versions available" in rest:
            names += re.findall(r"[a-z][\w.]*", rest.partition(":")[2])
    return list(dict.fromkeys(names))


def _elsewhere(site: Site) -> str:
    return (
        "call the doctor where Slurm's commands are (a login node), "
        f"or correct launch in {site.file}"
    )


def examine_sbatch(campaign: Campaign, cluster: bool) -> Checks:
    """Whether Slurm would take the campaign's largest request."""
    site = campaign.site
    if not cluster:
        why = "no job is submitted without --profile slurm"
        if site.slurm is None:
            why = f"{site.file} has no 'slurm' section: {why}"
        yield Check(SBATCH, SKIPPED, why)
        return
    try:
        commands.check_commands()
        shape = largest_request(campaign)
        words = " ".join(shape.sbatch_words())
        partition = of_slurm(site).partition
        known = commands.partitions()
        where = f"{site.file}: slurm"
        commands.check_names(partition, [shape.constraint], shape.minutes, where, known)
    except UserError as error:
        yield Check(SBATCH, FAILED, str(error), f"correct slurm in {site.file}")
        return
    if refused := commands.refusal(shape.sbatch_words()):
        mend = f"correct slurm in {site.file}, or make the campaign's largest run smaller"
        yield Check(SBATCH, FAILED, f"Slurm refuses sbatch {words}: {refused}", mend)
        return
    yield Check(SBATCH, OK, f"Slurm accepts the largest request: {words}")


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


def examine_faults(campaign: Campaign, cluster: bool) -> Checks:
    """Whether jobs of this campaign's runs are kept off nodes that failed."""
    if not cluster:
        yield Check(AVOIDED, SKIPPED, "no job is submitted without --profile slurm")
        return
    avoided = NodeFaults.read(campaign.runs_folder).why_avoided()
    if not avoided:
        yield Check(AVOIDED, OK, "none is avoided: no job of the last day failed for its node")
        return
    detail = "; ".join(f"{node}: {why}" for node, why in avoided.items())
    mend = f"have them examined; to use them again, delete {campaign.runs_folder / NODES}"
    yield Check(AVOIDED, WARNING, detail, mend)
