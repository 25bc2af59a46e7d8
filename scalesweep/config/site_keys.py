"""The keys of a site below its first ones: their types, defaults and words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES
from scalesweep.compute.power.counters import POWER_SOURCES
from scalesweep.config.models import (
    FILLED,
    Count,
    Flag,
    Minutes,
    Model,
    Number,
    Positive,
    Short,
    Text,
    checked,
    matching,
    one_of,
)
from scalesweep.core.paths import CHECKOUT

DEFAULT, TORCH = "tensorflow", "torch"  # frameworks; the first is that of a single Python
Templates = Mapping[str, tuple[str, ...]]
_OfSlurm = Annotated[str, Short(lambda _: "", (type(None),))]
_Ranks = Annotated[str, one_of(("single", "multi"))]
_Flops = Annotated[Number, Field(gt=0, le=1e24)]
_GRES = matching(r"([A-Za-z0-9_]+(:[A-Za-z0-9_.]+)?:[0-9]+)?", "name:count or name:type:count")
# Option of sbatch -> where to say that instead; empty: nowhere, scalesweep needs it for itself.
_INSTEAD = {
    "account": "slurm.account", "partition": "slurm.partition", "qos": "slurm.qos",
    "constraint": "slurm.constraint", "gres": "slurm.gres", "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node", "nodes": "ranks_per_node", "ntasks": "ranks",
    "ntasks-per-node": "ranks_per_node", "ntasks-per-gpu": "gpus_per_node",
    "cpus-per-task": "cores_per_node", "cpus-per-gpu": "cores_per_node",
    "time": "time_limit_minutes", "mem": "memory_gib_per_rank",
    "mem-per-cpu": "memory_gib_per_rank", "dependency": "concurrent_runs",
    "job-name": "", "output": "", "error": "", "comment": "", "export": "", "chdir": "",
    "parsable": "", "wrap": "", "array": "", "test-only": "", "wait": "", "clusters": "",
    "hold": "",
}  # fmt: skip


def _no_extra(word: str) -> str | None:
    """Why a site must not add an option of sbatch; None if it may."""
    name = word.removeprefix("--").partition("=")[0]
    instead = f"write {_INSTEAD.get(name)}" if _INSTEAD.get(name) else "scalesweep sets it"
    return f"{word}: must not be set here: {instead}" if name in _INSTEAD else None


class Staging(Model):
    """The job that makes a data set: one task with ``stage_workers`` CPUs."""

    minutes: Annotated[Number, Field(gt=0)] = 60.0
    """its limit"""
    memory_gib: Positive = 4.0
    """GiB of memory"""


class SlurmSite(Model):
    """How jobs are asked for on a site with Slurm."""

    account: _OfSlurm = ""
    """as of sbatch; null: Slurm's default"""
    partition: _OfSlurm = ""
    """as of sbatch; null: Slurm's default"""
    qos: _OfSlurm = ""
    """as of sbatch; null: Slurm's default"""
    constraint: _OfSlurm = ""
    """feature expression that every job's nodes must meet, unless an experiment has its own"""
    gres: Annotated[_OfSlurm, _GRES] = ""
    """generic resources of a node, such as `gpu:a100:4`, requested instead of `gpus_per_node`"""
    exclusive: Flag = False
    """whole nodes, with all their memory"""
    extra: tuple[
        Annotated[str, matching("--[a-z].*", "an option as --name=value"), checked(_no_extra)], ...
    ] = ()
    """further options of sbatch: `--exclude=NODE`, `--reservation=NAME`, `--requeue` (needed where
    jobs are preempted). Options that have a key of their own are refused"""
    startup_minutes: Annotated[Number, Field(gt=0)] = 1.0
    """added to the limit for the start of a job and its end"""
    margin: Annotated[Number, Field(ge=1)] = 2.0
    """the limit of a run whose point has finished runs is their time times this, at most its time
    limit"""
    max_attempts: Annotated[Count, Field(le=20)] = 3
    """jobs of one run in one call of Snakemake, if another attempt may succeed
    ([causes](causes.md))"""
    max_minutes: Minutes | None = None
    """the longest limit that is requested after TIMEOUT; default: four times `time_limit_minutes`
    """
    staging: Staging = Staging.model_construct()
    """the job that makes a data set: one task with `stage_workers` CPUs"""


class PowerSampling(Model):
    """How power is sampled on a site."""

    FORM: ClassVar[str] = "off, or a map of interval_s, sources and sysfs"
    interval_s: Annotated[Number, Field(ge=0.01, le=10)] = 1.0
    """seconds between samples"""
    sources: Annotated[tuple[Annotated[str, one_of(POWER_SOURCES)], ...], FILLED] = POWER_SOURCES
    """what may be read"""
    sysfs: Annotated[str, matching("/.*", "an absolute path")] = "/sys"
    """where sysfs is"""


class Launch(Model):
    """The launcher command: words put before a benchmark's command."""

    single: tuple[str, ...]
    """for one rank"""
    multi: tuple[str, ...]
    """for several. Filled in: `{ranks}`, `{nodes}`, `{ranks_per_node}`, `{cpus_per_rank}`,
    `{python}`, `{bin}` (the folder of `python`), `{launchers}` (`workflow/launchers/`)"""
    torch: Annotated[dict[_Ranks, tuple[str, ...]], FILLED] | None = None
    """instead, for benchmarks with `framework: torch`; `{python}` is theirs. Words of srun or
    mpirun alone start ranks of any framework ([launching](../guide/pytorch.md#how-ranks-start))"""


def _located(program: str) -> str:
    """A path made absolute: of the working folder if it is there, else of scalesweep's checkout, if
    there is one; a word without a slash is left for the shell to find."""
    if "/" not in program and not program.startswith("~"):
        return program
    path = Path(program).expanduser()
    return str(path.absolute() if path.exists() else (CHECKOUT or Path.cwd()) / path)


_Program = Annotated[Text, AfterValidator(_located)]


def image_of(words: Sequence[str]) -> str:
    """The image among the words that start a container: the last that is no option."""
    return next((word for word in reversed(words[1:]) if not word.startswith("-")), "")


def _with_image(words: tuple[str, ...]) -> tuple[str, ...]:
    """Words of a container, the path of its image made absolute."""
    image = image_of(words)
    path = Path(image).expanduser()
    here = str(path.absolute()) if path.exists() else image
    return tuple(here if word == image else word for word in words)


Container = Annotated[tuple[str, ...], AfterValidator(_with_image)]


class Pythons(Model):
    """The Pythons of a site, by framework."""

    FORM: ClassVar[str] = "a path, null, or a map of tensorflow and torch to paths"
    tensorflow: _Program | None = None
    """for TensorFlow with Horovod, and for benchmarks that name no `framework`; null: the
    interpreter of Snakemake"""
    torch: _Program | None = None
    """for PyTorch. A relative path is looked for in the working folder, then in scalesweep's own;
    `make torch` makes `.torch/bin/python` there. Without it points of such benchmarks are
    unsupported"""


class Peaks(Model):
    """What data sheets state of a node."""

    FORM: ClassVar[str] = "device, or flops and bytes_per_s of a node, as data sheets state them"
    device: Annotated[str, one_of(DEVICES)] | None = None
    """what the GPUs of a node are: its
    [data sheet](../methods/utilisation.md#peaks-of-data-sheets), times `gpus_per_node`, fills in
    the rest of `peaks`"""
    flops: Annotated[dict[Annotated[str, one_of(DTYPES)], _Flops], FILLED] | None = None
    """FLOP/s of a node by type: `float32`, `tf32`, `bfloat16`, `float16`, `float8`"""
    bytes_per_s: _Flops | None = None
    """bytes/s of a node's memory"""
