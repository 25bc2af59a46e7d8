"""What the doctor looks at where runs are, derived from campaign and site."""

import secrets
import sys
from pathlib import Path

from scalesweep.compute.doctor import main as node_side
from scalesweep.compute.doctor.order import HERE, DoctorOrder, write
from scalesweep.compute.doctor.ranks import RANKS
from scalesweep.compute.job_spec import Asked, Order
from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.paths import REPO
from scalesweep.core.profilers import NONE
from scalesweep.jobs.run_spec import power_order, site_environment

PROGRAMS = REPO / "workflow" / "doctor"
# Less than the deadline of a check, in which the program's processes end.
ENDING_S = 7.0


def point_of(campaign: Campaign) -> dict[str, int]:
    """The two ranks to start: on two nodes if a run of the campaign takes several."""
    site = campaign.site
    several = site.nodes > 1 and any(
        site.nodes_for(point) > 1 for e in campaign.experiments for point in e.points
    )
    return {"ranks": RANKS, "ranks_per_node": 1 if several else RANKS}


def order_for(campaign: Campaign, folder: Path, in_slurm: bool) -> Path:
    """Write the order for the checks of a campaign's site; returns its path. Raises OSError."""
    site, point = campaign.site, point_of(campaign)
    nodes, per_node = site.nodes_for(point), point["ranks_per_node"]
    needs_horovod = _needs_horovod(campaign)
    launcher = site.launcher(point)
    packages = [] if needs_horovod else ["numpy"]
    software = [site.python, str(PROGRAMS / "software.py"), *packages]
    horovod = ["horovod"] if needs_horovod else []
    ranks = [*launcher, site.python, str(PROGRAMS / "rank.py"), *horovod]
    binds = site.launch is not None and any("{cpus_per_rank}" in w for w in site.launch["multi"])
    order: DoctorOrder = {
        "folder": str(folder),
        "site_file": str(site.file),
        "token": secrets.token_hex(8),
        "nodes": nodes if in_slurm else 1,
        "software": _program(
            site, folder / "software", software, node_side.SOFTWARE_S, 1, in_slurm
        ),
        "ranks": _program(site, folder / "ranks", ranks, node_side.RANKS_S, nodes, in_slurm),
        "needs_horovod": needs_horovod,
        "needs_ranks": any(p["ranks"] > 1 for e in campaign.experiments for p in e.points),
        "horovod_on": _horovod_on(site),
        "gpus_per_node": site.gpus_per_node,
        "cpus_per_rank": max(1, site.cores_per_node // per_node) if binds else None,
        "in_slurm": in_slurm,
    }
    folder.mkdir(parents=True)
    (folder / HERE).write_text(order["token"])
    return write(order)


def _program(
    site: Site, folder: Path, argv: list[str], seconds: float, nodes: int, in_slurm: bool
) -> Order:
    """The order of a program of the doctor, which is started like that of a run."""
    limit_s = seconds - ENDING_S
    asked: Asked = {"nodes": nodes, "minutes": None, "limit_s": limit_s, "mem_mb": None}
    return {
        "run_id": "doctor",
        "profile": NONE,
        "benchmark": "doctor",
        "version": 1,
        "params": {},
        "repeat": 0,
        "site": site.name,
        "folder": str(folder),
        "data": None,
        "node_local": site.node_local,
        "argv": argv,
        "env": {"TF_CPP_MIN_LOG_LEVEL": "3", **site_environment(site)},
        "prologue": list(site.prologue),
        "time_limit_s": limit_s,
        # Where it is set, Slurm's variables are taken away, as in the job of a run.
        "asked": asked if in_slurm else None,
        "power": power_order(site, nodes),
    }


def _needs_horovod(campaign: Campaign) -> bool:
    """Whether a benchmark is started with the harness, which imports TensorFlow and Horovod."""
    return any(
        experiment.benchmark.extract is None
        and any("{benchmarks}" in part.words for part in experiment.benchmark.command.parts)
        for experiment in campaign.experiments
    )


def _horovod_on(site: Site) -> list[str]:
    """What the site asks Horovod to exchange data with: mpi, gloo, nccl."""
    names = ("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS", "HOROVOD_GPU_OPERATIONS")
    asked = [site.env[name].lower() for name in names if name in site.env]
    if site.gpus_per_node:
        asked.append("nccl")
    return [name for name in dict.fromkeys(asked) if name in ("mpi", "gloo", "nccl")]


def node_command(order: Path) -> list[str]:
    """The command that carries out an order's checks."""
    return [sys.executable, "-I", "-S", str(Path(node_side.__file__)), str(order.absolute())]
