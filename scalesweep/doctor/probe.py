"""The doctor's probe: two ranks, started by the site's words as those of a run are."""

import contextlib
import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from scalesweep.compute import probe_job
from scalesweep.compute.job_spec import Asked
from scalesweep.compute.probe_job import LOG, OUTCOME, PROBE_S, Probe
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.paths import REPO
from scalesweep.core.record import last_lines
from scalesweep.jobs.run_spec import site_environment
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import run_shape
from scalesweep.slurm.sacct import FINAL
from scalesweep.state.programs import launcher_words
from scalesweep.state.stock import lacks_framework

PROBE = REPO / "workflow" / "doctor" / "site_probe.py"
# What the benchmarks of a part start with: TensorFlow and Horovod, PyTorch, or nothing known.
HOROVOD, TORCH, PLAIN = "horovod", "torch", ""
RANKS = 2
TOKEN = "here"  # a file in the call's folder, which each rank reads
QUEUE_S = 50.0  # how long the job may wait in the queue
LATE_LOOKS = 5  # at a job that is over: a network file system may show its last lines later
_LOOK_S = 1.0
_ENDING_S = 12.0  # a program's end and the job's


class Part(NamedTuple):
    """What benchmarks of one kind start with: a Python and a launcher of the site's."""

    needs: str  # HOROVOD, TORCH or PLAIN
    lacks: str  # why the site cannot start it, and what mends that; empty: it can
    needs_ranks: bool  # whether a run of several ranks uses the site's launcher
    cpus_per_rank: int | None  # None: the launcher is asked for no binding
    probe: Probe


class Said(NamedTuple):
    """What the ranks of a probe have said, and how it failed (``wrong``; empty: it has not)."""

    ranks: list[dict[str, Any]]
    wrong: str


def new_folder(results: Path) -> Path:
    """A new folder for one call, below the results, with the file ``TOKEN`` in it."""
    shutil.rmtree(results / ".doctor", ignore_errors=True)  # of earlier calls
    # Not a name of before: nodes may remember what was in it.
    folder = results.absolute() / ".doctor" / f"{time.time_ns()}"
    folder.mkdir(parents=True)
    (folder / TOKEN).write_text(folder.name)
    return folder


def _need_of(benchmark: Benchmark) -> str:
    """What a benchmark starts with, as far as its declaration says."""
    if benchmark.framework == TORCH:
        return TORCH
    # Those of the harness import TensorFlow and Horovod where they name nothing else.
    harness = any("{benchmarks}" in part.words for part in benchmark.command)
    return HOROVOD if harness and benchmark.extract is None else PLAIN


def needs_of(campaign: Campaign) -> list[str]:
    """What the parts of a campaign need, in the order in which they are looked at."""
    needs = {_need_of(experiment.benchmark) for experiment in campaign.experiments}
    of_site = [HOROVOD if HOROVOD in needs else PLAIN] if needs != {TORCH} else []
    return [*of_site, *({TORCH} & needs)]


def _point_of(campaign: Campaign) -> dict[str, int]:
    """The two ranks to start: on two nodes if a run of the campaign takes several."""
    site, points = campaign.site, [point for e in campaign.experiments for point in e.points]
    several = site.nodes > 1 and any(site.nodes_for(point) > 1 for point in points)
    return {"ranks": RANKS, "ranks_per_node": 1 if several else RANKS}


def part_of(campaign: Campaign, needs: str, folder: Path, in_slurm: bool) -> Part:
    """The part of a campaign that needs this; it is looked at in ``folder``, the call's."""
    site, point = campaign.site, _point_of(campaign)
    framework = TORCH if needs == TORCH else None
    ours = [e for e in campaign.experiments if (_need_of(e.benchmark) == TORCH) == bool(framework)]
    binds = any("{cpus_per_rank}" in word for word in site.launch_for(framework)["multi"])
    python = site.python_for(framework)
    launcher = launcher_words(site, point, framework)
    # Two ranks on a node with a single GPU can only meet without it.
    few = framework and 0 < site.gpus_per_node < site.ranks_on_node(point)
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if few else {}
    # With ``asked`` Slurm's variables are taken away, as in the job of a run.
    nodes = site.nodes_for(point)
    asked: Asked = {"nodes": nodes, "minutes": None, "limit_s": PROBE_S, "mem_mb": None}
    lacks = (lacks_framework(site, e.benchmark) for e in ours if framework)
    return Part(
        needs=needs,
        lacks=next(filter(None, lacks), ""),
        needs_ranks=any(
            point["ranks"] > 1 for e in ours if e.benchmark.launch is None for point in e.points
        ),
        cpus_per_rank=max(1, site.cores_per_node // point["ranks_per_node"]) if binds else None,
        probe={
            "folder": str(folder / f"probe{needs}"),
            "argv": [*launcher, python, str(PROBE), str(folder), *filter(None, [needs])],
            "env": {"TF_CPP_MIN_LOG_LEVEL": "3", **site_environment(site), **hidden},
            "prologue": list(site.prologue),
            "asked": asked if in_slurm else None,
        },
    )


def ask(campaign: Campaign, part: Part, in_slurm: bool) -> Said:
    """What the probe of a part says, here or in a Slurm job; raises UserError if that does not
    start."""
    work = Path(part.probe["folder"])
    if in_slurm:
        _in_a_job(campaign, part.probe)
    else:
        probe_job.carry_out(part.probe)
    try:
        wrong = (work / OUTCOME).read_text()
        text = (work / LOG).read_text(errors="replace")
    except OSError:
        return Said([], f"its job ended without an answer{_last(work / 'job.log')}")
    return Said(said_in(text), wrong and f"{wrong}{_last(work / LOG)}")


def _last(log: Path) -> str:
    """The last line of a log that is none of a rank's answer, behind a colon."""
    lines = [line.strip() for line in last_lines(log) if line.strip() and "@doctor" not in line]
    return f": {lines[-1][:300]}" if lines else ""


def said_in(text: str) -> list[dict[str, Any]]:
    """What the ranks have said in their output, whatever a launcher puts in front of it."""
    decode = json.JSONDecoder().raw_decode
    facts = []
    for part in text.split("@doctor ")[1:]:
        with contextlib.suppress(ValueError):
            facts.append(decode(part)[0])
    return facts


def _in_a_job(campaign: Campaign, probe: Probe) -> None:
    """Start a probe in a job with the request of a run; raises UserError if it does not start."""
    folder = Path(probe["folder"])
    folder.mkdir()
    path = folder / "probe.json"
    write_atomic(path, json.dumps(probe))
    command = [sys.executable, "-I", "-S", probe_job.__file__, str(path)]
    shape = run_shape(campaign.site, _point_of(campaign), PROBE_S + _ENDING_S)
    words = [*shape.sbatch_words(), "--job-name=scalesweep-doctor", f"--output={folder}/job.log"]
    job, why = commands.sbatch(words, shlex.join(command))
    if job is None:
        raise UserError(commands.last_line(why))
    too_long, over = time.monotonic() + QUEUE_S, 0
    try:
        while not (folder / OUTCOME).exists() and over < LATE_LOOKS:
            time.sleep(_LOOK_S)
            seen = commands.queue_states().get(job)
            if seen and seen.state == "PENDING" and time.monotonic() > too_long:
                raise UserError(f"no node within {QUEUE_S:g} s (Slurm: {seen.reason})")
            over += seen is None or seen.state in FINAL
    finally:
        with contextlib.suppress(UserError):
            commands.ask("scancel", str(job))
