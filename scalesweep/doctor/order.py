"""What the doctor looks at where runs are, derived from campaign and site."""

import secrets
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from scalesweep.compute.doctor import main as node_side
from scalesweep.compute.doctor.order import (
    HERE,
    HOROVOD,
    PLAIN,
    TORCH,
    DoctorOrder,
    Part,
    write,
)
from scalesweep.compute.doctor.ranks import RANKS
from scalesweep.compute.job_spec import Asked, Order
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site
from scalesweep.core.paths import REPO
from scalesweep.core.profilers import NONE
from scalesweep.jobs.run_spec import power_order, site_environment
from scalesweep.state.frameworks import lacks_framework

PROGRAMS = REPO / "workflow" / "doctor"
# Less than the deadline of a check, in which the program's processes end.
ENDING_S = 7.0
# PyTorch's two ranks wait for each other and for what they exchange, with a word after that.
EXCHANGE_S = 24.0


def needs_of(campaign: Campaign) -> list[str]:
    """What the benchmarks of a campaign start with, in the order in which it is looked at."""
    needs = {_need_of(experiment.benchmark) for experiment in campaign.experiments}
    of_site = [HOROVOD if HOROVOD in needs else PLAIN] if needs != {TORCH} else []
    return [*of_site, *({TORCH} & needs)]


def _need_of(benchmark: Benchmark) -> str:
    """What a benchmark starts with, as far as its declaration says."""
    if benchmark.framework == TORCH and benchmark.python is None:
        return TORCH
    # Those of the harness import TensorFlow and Horovod where they name nothing else.
    harness = any("{benchmarks}" in part.words for part in benchmark.command.parts)
    return HOROVOD if harness and benchmark.extract is None else PLAIN


def point_of(campaign: Campaign) -> dict[str, int]:
    """The two ranks to start: on two nodes if a run of the campaign takes several."""
    site = campaign.site
    several = site.nodes > 1 and any(
        site.nodes_for(point) > 1 for e in campaign.experiments for point in e.points
    )
    return {"ranks": RANKS, "ranks_per_node": 1 if several else RANKS}


def order_for(campaign: Campaign, folder: Path, in_slurm: bool) -> Path:
    """Write the order for the checks of a campaign's site; returns its path. Raises OSError."""
    site = campaign.site
    nodes = site.nodes_for(point_of(campaign))
    order: DoctorOrder = {
        "folder": str(folder),
        "site_file": str(site.file),
        "token": secrets.token_hex(8),
        "nodes": nodes if in_slurm else 1,
        "parts": [_part(campaign, needs, folder, in_slurm) for needs in needs_of(campaign)],
        "horovod_on": _horovod_on(site),
        "gpus_per_node": site.gpus_per_node,
        "in_slurm": in_slurm,
    }
    folder.mkdir(parents=True)
    (folder / HERE).write_text(order["token"])
    return write(order)


def _part(campaign: Campaign, needs: str, folder: Path, in_slurm: bool) -> Part:
    """What the benchmarks that need this start with: the site's Python and launcher for it."""
    site, point = campaign.site, point_of(campaign)
    experiments = [
        e for e in campaign.experiments if (_need_of(e.benchmark) == TORCH) == (needs == TORCH)
    ]
    framework = TORCH if needs == TORCH else None
    python, launch = site.python_for(framework), site.launch_for(framework)
    packages = {HOROVOD: [], TORCH: ["numpy", TORCH], PLAIN: ["numpy"]}[needs]
    asked = {HOROVOD: [HOROVOD], TORCH: [TORCH, f"{EXCHANGE_S:g}", str(folder)], PLAIN: []}[needs]
    launcher = site.launcher(point, framework=framework, python=python)
    nodes, per_node = site.nodes_for(point), point["ranks_per_node"]
    own = site.launch is not None and launch["multi"] != site.launch["multi"]
    software = [python, str(PROGRAMS / "software.py"), *packages]
    ranks = [*launcher, python, str(PROGRAMS / "rank.py"), *asked]
    # Two ranks on a node with a single GPU can only meet without it.
    few = needs == TORCH and 0 < site.gpus_per_node < site.ranks_on_node(point)
    env = {"CUDA_VISIBLE_DEVICES": ""} if few else {}
    lacks = filter(None, (lacks_framework(site, e.benchmark) for e in experiments))
    start = partial(_program, site, in_slurm=in_slurm)
    return {
        "needs": needs,
        "lacks": next(lacks, "") if needs == TORCH else "",
        "software": start(folder / f"software{needs}", software, node_side.SOFTWARE_S, 1),
        "ranks": start(folder / f"ranks{needs}", ranks, node_side.RANKS_S, nodes, env=env),
        "needs_ranks": any(
            point["ranks"] > 1
            for e in experiments
            for point in e.points
            if e.benchmark.launch is None
        ),
        "launch": f"launch.{needs}.multi" if own else "launch.multi",
        "cpus_per_rank": max(1, site.cores_per_node // per_node)
        if any("{cpus_per_rank}" in word for word in launch.get("multi", ()))
        else None,
    }


def _program(
    site: Site,
    folder: Path,
    argv: list[str],
    seconds: float,
    nodes: int,
    in_slurm: bool,
    env: Mapping[str, str] = MappingProxyType({}),
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
        "env": {"TF_CPP_MIN_LOG_LEVEL": "3", **site_environment(site), **env},
        "prologue": list(site.prologue),
        "time_limit_s": limit_s,
        # Where it is set, Slurm's variables are taken away, as in the job of a run.
        "asked": asked if in_slurm else None,
        "power": power_order(site, nodes),
    }


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
