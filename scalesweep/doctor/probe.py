"""The doctor's probe: two ranks, started by the site's words as those of a run are."""

import contextlib
import json
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute import probe_job
from scalesweep.compute.job_spec import Order
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.paths import REPO
from scalesweep.core.profilers import NONE
from scalesweep.core.record import last_lines
from scalesweep.jobs.run_spec import power_order, site_environment
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import run_shape
from scalesweep.slurm.sacct import FINAL, JobState
from scalesweep.state.frameworks import lacks_framework

PROBE = REPO / "workflow" / "doctor" / "site_probe.py"
# What the benchmarks of a part start with: TensorFlow and Horovod, PyTorch, or nothing known.
HOROVOD, TORCH, PLAIN = "horovod", "torch", ""
RANKS = 2
TOKEN = "here"  # a file in the probe's folder, which each rank reads
PROBE_S = 45.0  # of one probe; it imports a framework
QUEUE_S = 50.0  # how long the job may wait in the queue
LATE_S = 5.0  # a network file system may show the last lines of a job so much later
_ENDING_S = 12.0  # a program's end and the job's


class Said(NamedTuple):
    """What the ranks of a probe have said, and how it failed (``wrong``; empty: it has not)."""

    ranks: list[dict[str, Any]]
    wrong: str
    power: str | None = ""  # why no power can be sampled; None: switched off


class Part(NamedTuple):
    """What benchmarks of one kind start with: a Python and a launcher of the site's."""

    needs: str  # HOROVOD, TORCH or PLAIN
    suffix: str  # of the names of its checks, where another part has some of these names
    lacks: str  # why the site cannot start it, and what mends that; empty: it can
    needs_ranks: bool  # whether a run of several ranks uses the site's launcher
    launch: str  # the key of the site file that has the launcher's words
    cpus_per_rank: int | None  # None: the launcher is asked for no binding
    order: Order


def parts_of(campaign: Campaign, folder: Path, in_slurm: bool) -> list[Part]:
    """The parts of a campaign, in the order in which they are looked at."""
    needs = {_need_of(experiment.benchmark) for experiment in campaign.experiments}
    of_site = [HOROVOD if HOROVOD in needs else PLAIN] if needs != {TORCH} else []
    every = [*of_site, *({TORCH} & needs)]
    parts = [_part(campaign, need, folder / f"probe{need}", in_slurm) for need in every]
    return [*parts[:1], *(part._replace(suffix=f" ({part.needs})") for part in parts[1:])]


def _need_of(benchmark: Benchmark) -> str:
    """What a benchmark starts with, as far as its declaration says."""
    if benchmark.framework == TORCH and benchmark.python is None:
        return TORCH
    # Those of the harness import TensorFlow and Horovod where they name nothing else.
    harness = any("{benchmarks}" in part.words for part in benchmark.command.parts)
    return HOROVOD if harness and benchmark.extract is None else PLAIN


def _point_of(campaign: Campaign) -> dict[str, int]:
    """The two ranks to start: on two nodes if a run of the campaign takes several."""
    site = campaign.site
    several = site.nodes > 1 and any(
        site.nodes_for(point) > 1 for e in campaign.experiments for point in e.points
    )
    return {"ranks": RANKS, "ranks_per_node": 1 if several else RANKS}


def _part(campaign: Campaign, needs: str, folder: Path, in_slurm: bool) -> Part:
    site, point = campaign.site, _point_of(campaign)
    experiments = [
        e for e in campaign.experiments if (_need_of(e.benchmark) == TORCH) == (needs == TORCH)
    ]
    framework = TORCH if needs == TORCH else None
    launch = site.launch_for(framework)
    assert site.launch is not None
    own = launch["multi"] != site.launch["multi"]
    lacks = filter(None, (lacks_framework(site, e.benchmark) for e in experiments))
    binds = any("{cpus_per_rank}" in word for word in launch.get("multi", ()))
    return Part(
        needs=needs,
        suffix="",
        lacks=next(lacks, "") if needs == TORCH else "",
        needs_ranks=any(
            point["ranks"] > 1
            for e in experiments
            for point in e.points
            if e.benchmark.launch is None
        ),
        launch=f"launch.{needs}.multi" if own else "launch.multi",
        cpus_per_rank=max(1, site.cores_per_node // point["ranks_per_node"]) if binds else None,
        order=_order(campaign, framework, folder, in_slurm),
    )


def _order(campaign: Campaign, framework: str | None, folder: Path, in_slurm: bool) -> Order:
    """The order of the probe, which is started like the program of a run."""
    site, point = campaign.site, _point_of(campaign)
    python, nodes = site.python_for(framework), site.nodes_for(point)
    launcher = site.launcher(point, framework=framework, python=python)
    needs = folder.name.removeprefix("probe")
    # Two ranks on a node with a single GPU can only meet without it.
    few = framework == TORCH and 0 < site.gpus_per_node < site.ranks_on_node(point)
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
        "argv": [*launcher, python, str(PROBE), str(folder.parent), *filter(None, [needs])],
        "env": {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            **site_environment(site),
            **({"CUDA_VISIBLE_DEVICES": ""} if few else {}),
        },
        "prologue": list(site.prologue),
        "time_limit_s": PROBE_S,
        # Where it is set, Slurm's variables are taken away, as in the job of a run.
        "asked": {"nodes": nodes, "minutes": None, "limit_s": PROBE_S, "mem_mb": None}
        if in_slurm
        else None,
        "power": power_order(site, nodes),
    }


def ask(campaign: Campaign, parts: list[Part], folder: Path, in_slurm: bool) -> list[Said]:
    """What the probes of the parts say, here or in a Slurm job; raises UserError if none started.

    ``folder``: new, below the results; all that they write to.
    """
    orders = [part.order for part in parts if not part.lacks]
    folder.mkdir(parents=True)
    (folder / TOKEN).write_text(folder.name)
    if in_slurm and orders:
        _in_a_job(campaign, orders, folder)
    else:
        probe_job.carry_out(orders)
    return [
        Said([], part.lacks) if part.lacks else _said(Path(part.order["folder"])) for part in parts
    ]


def _said(work: Path) -> Said:
    """What a probe has left in its folder."""
    try:
        outcome = json.loads((work / probe_job.OUTCOME).read_bytes())
        text = (work / "stdout.log").read_text(errors="replace")
    except OSError:
        lines = [line.strip() for line in last_lines(work.parent / "job.log") if line.strip()]
        said = f": {lines[-1][:300]}" if lines else ""
        return Said([], f"its job ended without an answer{said}")
    return Said(said_in(text), outcome["wrong"], outcome["power"])


def said_in(text: str) -> list[dict[str, Any]]:
    """What the ranks have said in their output, whatever a launcher puts in front of it."""
    decode = json.JSONDecoder().raw_decode
    facts = []
    for part in text.split("@doctor ")[1:]:
        with contextlib.suppress(ValueError):
            facts.append(decode(part)[0])
    return facts


def _in_a_job(campaign: Campaign, orders: list[Order], folder: Path) -> None:
    """Carry the orders out in a job with the request of a run; raises UserError if none starts."""
    path = folder / "orders.json"
    write_atomic(path, json.dumps(orders))
    command = [sys.executable, "-I", "-S", probe_job.__file__, str(path.absolute())]
    shape = run_shape(campaign.site, _point_of(campaign), (PROBE_S + _ENDING_S) * len(orders))
    words = [*shape.sbatch_words(), "--job-name=scalesweep-doctor", f"--output={folder}/job.log"]
    said = commands.ask("sbatch", "--parsable", *words, f"--wrap={shlex.join(command)}")
    job = said.strip().partition(";")[0]
    try:
        last = Path(orders[-1]["folder"], probe_job.OUTCOME)
        began = time.monotonic()
        for state, reason in _states(job):
            if (
                state in (JobState.PENDING, JobState.CONFIGURING)
                and time.monotonic() - began > QUEUE_S
            ):
                raise UserError(f"no node within {QUEUE_S:g} s (Slurm: {reason or state})")
            if last.exists():
                return
        deadline = time.monotonic() + LATE_S
        while not last.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        with contextlib.suppress(UserError):
            commands.ask("scancel", job)


def _states(job: str) -> Iterator[tuple[str, str]]:
    """State and reason of a job, once a second until it has left the queue."""
    while True:
        try:
            said = commands.ask("squeue", "-h", "-j", job, "-o", "%T|%r").strip()
        except UserError:
            return
        state, _, reason = said.partition("|")
        if not state or state in FINAL:
            return
        yield state, reason
        time.sleep(1)


def new_folder(results: Path) -> Path:
    """A name for the folder of one call, below the results."""
    return results.absolute() / f".doctor/{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
