"""Sites: the machine a campaign runs on, and how a program is started there."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES
from scalesweep.compute.power.counters import POWER_SOURCES
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.command_template import LaunchWords, Program, Python, Templates
from scalesweep.config.models import (
    Count,
    FileName,
    Flag,
    Model,
    Positive,
    Short,
    Variable,
    WrongKeyError,
    instead_of,
    matching,
    one_of,
    read,
)
from scalesweep.config.study import OWN_SITES, file_names, named_file, shown
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted
from scalesweep.core.paths import SITES

TORCH = "torch"  # the framework whose Python and launcher may be others than TensorFlow's
_OfSlurm = Annotated[str, Short(lambda _: "", (type(None),))]
_GRES = matching(r"([A-Za-z0-9_]+(:[A-Za-z0-9_.]+)?:[0-9]+)?", "name:count or name:type:count")
# Options of sbatch that scalesweep sets, by itself or by keys: none of these.
_OPTION = (
    "--(?!(account|partition|qos|constraint|gres|gpus|gpus-per-task|nodes|time|mem|mem-per-cpu|"
    "ntasks|ntasks-per-node|ntasks-per-gpu|cpus-per-task|cpus-per-gpu|dependency|array|job-name|"
    "output|error|comment|export|chdir|parsable|wrap|test-only|wait|clusters|hold)(=|$))[a-z].*"
)
_WANTED = "an option as --name=value that has no key of its own (nodes, account, ...)"


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
    extra: tuple[Annotated[str, matching(_OPTION, _WANTED)], ...] = ()
    """options without a key: `--exclude=NODE`, `--requeue` (needed where jobs are preempted)"""
    startup_minutes: Positive = 1.0
    """added to the limit for the start of a job and its end"""
    max_attempts: Annotated[Count, Field(le=20)] = 3
    """jobs of one run in one call of Snakemake, if another may succeed ([causes](causes.md))"""
    max_minutes: Positive | None = None
    """longest limit requested after TIMEOUT; default: four times the site's `time_limit_minutes`"""
    staging_minutes: Positive = 60.0
    """limit of a job that makes a data set, a task with `stage_workers` CPUs"""
    staging_memory_gib: Positive = 4.0
    """GiB of memory of such a job"""


class PowerSampling(Model):
    """How power is sampled on a site."""

    FORM: ClassVar[str] = "off, or a map of interval_s, sources and sysfs"
    interval_s: Annotated[Positive, Field(ge=0.01, le=10)] = 1.0
    """seconds between samples"""
    sources: tuple[Annotated[str, one_of(POWER_SOURCES)], ...] = POWER_SOURCES
    """what may be read"""
    sysfs: str = "/sys"
    """where sysfs is"""


class Launch(Model):
    """The launcher command: words put before a benchmark's command."""

    single: LaunchWords
    """for one rank"""
    multi: LaunchWords
    """for several. In braces: `ranks`, `nodes`, `ranks_per_node`, `cpus_per_rank`, `python`, `bin`
    (the folder of `python`), `launchers` (`workflow/launchers/`)"""
    torch: Templates = Field({})
    """of benchmarks with `framework: torch` ([launching](../guide/pytorch.md#how-ranks-start))"""


class Pythons(Model):
    """The Pythons of a site, by framework."""

    FORM: ClassVar[str] = "a path, or a map of tensorflow and torch to paths"
    tensorflow: Python | None = None
    """for TensorFlow, and for benchmarks without `framework`; null: the interpreter of Snakemake"""
    torch: Python | None = None
    """for PyTorch, as `.torch/bin/python` of `make torch`; null: such points are unsupported"""


class Peaks(Model):
    """What data sheets state of a node."""

    device: Annotated[str, one_of(DEVICES)] | None = None
    """a node's GPUs, whose [data sheet](../methods/utilisation.md#peaks-of-data-sheets) is taken"""
    flops: dict[Annotated[str, one_of(DTYPES)], Positive] | None = None
    """FLOP/s of a node by type: `float32`, `tf32`, `bfloat16`, `float16`, `float8`"""
    bytes_per_s: Positive | None = None
    """bytes/s of a node's memory"""


class Site(Model):
    """A site says where to measure: a file in `config/sites/`, of the clone or of your study."""

    name: FileName = Field(alias="site")
    """the file's name; also the folder of its runs in `results/runs/`"""
    nodes: Count
    """a point takes ceil(ranks / ranks_per_node) of them"""
    cores_per_node: Annotated[
        Count, Short(lambda _: len(os.sched_getaffinity(0)), (type(None),))
    ] = Field(None, validate_default=True)
    """cores that runs may use; null: this machine's"""
    memory_gib_per_node: Positive | None = None
    """GiB that a job may take of a node"""
    gpus_per_node: Annotated[int, Field(strict=True, ge=0)] = 0
    """requested of every node with `slurm`; a campaign that needs more is refused (0: not known)"""
    memory_gib_per_gpu: Positive | None = None
    """GiB that nvidia-smi calls the total memory of a GPU ([memory](../methods/memory.md))"""
    oversubscribe: Flag = False
    """allow more ranks than cores on a node (not with `slurm`)"""
    concurrent_runs: Count | None = None
    """runs at the same time; default: 1. With `slurm` it is 1 (job by job) or absent (no limit)"""
    time_limit_minutes: Positive = 60.0
    """of one run, if the experiment sets none"""
    pythons: Annotated[Pythons, instead_of("tensorflow", str)] = Field(
        Pythons.model_construct(), alias="python"
    )
    """TensorFlow's, or a map of [frameworks](../guide/pytorch.md#where-pytorch-is) to paths"""
    data: str = "data"
    """data sets are made here"""
    node_local: str = "/tmp"
    """node-local scratch folder"""
    stage_workers: Count = 2
    """processes that make data files"""
    reserve_disk_gb: Annotated[float, Field(strict=True, ge=0)] = 2.0
    """making data sets leaves this much disk free"""
    prologue: tuple[str, ...] = ()
    """shell lines before every run: `module load ...`, `source ...`"""
    env: dict[Variable, str] = Field({})
    """environment variables of every run; an experiment's `env.NAME` takes precedence"""
    programs: dict[FileName, Program] = Field({})
    """name -> path of programs of your own ([external programs](../guide/external_programs.md))"""
    launch: Launch | None = None
    """the [launcher command](../guide/slurm.md#the-launcher-command); absent: of imported runs"""
    container: tuple[str, ...] = ()
    """words that start a [container](../guide/containers.md), its image's absolute path last"""
    power: Annotated[PowerSampling | None, Short(lambda _: None, ("off",))] = (
        PowerSampling.model_construct()
    )
    """`off`, or a map: sampling of power while programs run ([energy](../guide/energy.md))"""
    ceilings: str | None = None
    """results folder of a campaign whose probes measured this [machine](../guide/machine.md)"""
    data_sheet: Peaks = Field(Peaks.model_construct(), alias="peaks")
    """what data sheets state of a node; the dashed lines of [rooflines](../methods/roofline.md)"""
    slurm: SlurmSite | None = None
    """how `--profile slurm` requests [jobs](../guide/slurm.md); `{}` takes all defaults"""

    _file: Path = PrivateAttr(Path())

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> "Site":
        self._file = shown((info.context or {}).get("file", Path()))
        if self.container and not (self.pythons.tensorflow or self.pythons.torch):
            raise WrongKeyError("container", "set python too, to the image's: python: python3")
        if self.data_sheet.device and not self.gpus_per_node:
            raise WrongKeyError("peaks.device", "a node has no GPUs; set gpus_per_node")
        if self.slurm and self.concurrent_runs not in (1, None):
            raise WrongKeyError("concurrent_runs", "with a slurm section it is 1 or absent")
        if self.slurm and self.oversubscribe:
            raise WrongKeyError(
                "oversubscribe", "not with a slurm section: Slurm gives each rank its CPUs"
            )
        return self

    @property
    def file(self) -> Path:
        """Its file, as a person would type it."""
        return self._file

    @property
    def python(self) -> str:
        """What starts programs without a framework."""
        return self.pythons.tensorflow or sys.executable

    @property
    def image(self) -> str:
        """The image of the container: the last of its words that is no option; empty: none."""
        return next((word for word in self.container[:0:-1] if not word.startswith("-")), "")

    def nodes_for(self, point: Mapping[str, Any]) -> int:
        """Nodes that a point takes: ceil(ranks / ranks_per_node)."""
        return -(-int(point["ranks"]) // int(point["ranks_per_node"]))

    def check_point(self, benchmark: Benchmark, point: Mapping[str, Any], where: str) -> None:
        """Raise UserError if the site cannot hold the point's ranks, or has too few GPUs for them;
        ``CUDA_VISIBLE_DEVICES`` may show fewer, or hide them: then the program has to tell."""
        ranks, per_node = int(point["ranks"]), int(point["ranks_per_node"])
        nodes, on_node, gpus = self.nodes_for(point), self.ranks_on_node(point), benchmark.gpus
        if gpus is not None and self.gpus_per_node and self.launch:
            needed = int(gpus.number(point)) * on_node
            shown = "CUDA_VISIBLE_DEVICES" in {**self.env, **benchmark.variables(point)}
            if needed > self.gpus_per_node and not shown:
                values = ", ".join(f"{name} = {point[name]}" for name in sorted(gpus.names))
                at = f"{where}: {values}".removesuffix(": ")  # the same at all points
                raise UserError(
                    f"{at}: {counted(on_node, 'rank')} on a node would need {needed} GPUs, site "
                    f"{self.name} has gpus_per_node = {self.gpus_per_node}"
                )
        if nodes > self.nodes:
            raise UserError(
                f"{where}: {ranks} ranks at ranks_per_node = {per_node} take {nodes} nodes, site "
                f"{self.name} has {self.nodes}: set ranks_per_node: {-(-ranks // self.nodes)}"
            )
        if on_node > self.cores_per_node and not self.oversubscribe:
            raise UserError(
                f"{where}: {on_node} ranks on a node of {self.cores_per_node} cores; set "
                f"'oversubscribe: true' in {self.file} to allow it"
            )

    def ranks_on_node(self, point: Mapping[str, Any]) -> int:
        """Ranks of the fullest node of a point."""
        return -(-int(point["ranks"]) // self.nodes_for(point))

    def python_for(self, framework: str | None) -> str:
        """What starts the programs of a framework; the site's own where it names none for it."""
        return (self.pythons.torch if framework == TORCH else None) or self.python

    def launch_for(self, framework: str | None) -> Templates:
        """The launcher templates for programs of a framework; empty if the site starts nothing."""
        if self.launch is None:
            return {}
        usual = self.launch.model_dump(exclude={TORCH})
        return {**usual, **self.launch.torch} if framework == TORCH else usual


def load_site(name: str, where: str = "site", folder: Path | None = None) -> Site:
    """Read ``<name>.yaml`` of ``folder``, else the study's or the shipped one. Raises UserError."""
    files = folder.glob("*.yaml") if folder else file_names(OWN_SITES, SITES, "*.yaml")
    path = named_file("site", name, files, where)
    site = read(Site, load_yaml(path), path)
    if site.name != name:
        raise UserError(f"{path}: site: {site.name!r} differs from the file name {name!r}")
    return site
