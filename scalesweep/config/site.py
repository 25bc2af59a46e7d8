"""Sites: the machine a campaign runs on, and how a program is started there."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.analysis.model_shape import DTYPES
from scalesweep.compute.power.counters import POWER_SOURCES
from scalesweep.config.command_template import fill_launcher
from scalesweep.config.models import (
    FILLED,
    Count,
    FileName,
    Flag,
    Folder,
    Line,
    Lines,
    Minutes,
    Model,
    Number,
    Positive,
    ProgramName,
    Short,
    Text,
    Variable,
    WrongKeyError,
    instead_of,
    matching,
    one_of,
    read,
)
from scalesweep.config.sbatch_options import check_extra
from scalesweep.config.study import OWN_SITES, file_names, find_file, shown
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import CHECKOUT, LAUNCHERS, SITES

_DEFAULT = "tensorflow"  # the framework of a single Python
PLACEMENT = frozenset({"ranks", "ranks_per_node"})  # parameters of every benchmark
_Templates = Mapping[str, tuple[str, ...]]
_OfSlurm = Annotated[Line, Short(lambda _: "", (type(None),))]
_Flops = Annotated[Number, Field(gt=0, le=1e24)]
_GRES = matching(r"([A-Za-z0-9_]+(:[A-Za-z0-9_.]+)?:[0-9]+)?", "name:count or name:type:count")


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
    reservation: _OfSlurm = ""
    """as of sbatch"""
    gres: Annotated[_OfSlurm, _GRES] = ""
    """generic resources of a node, such as `gpu:a100:4`, requested instead of `gpus_per_node`"""
    exclusive: Flag = False
    """whole nodes, with all their memory"""
    requeue: Flag = False
    """let Slurm start a job again after its node failed or it was preempted; needed where jobs are
    preempted"""
    extra: tuple[Annotated[Line, matching("--[a-z].*", "an option as --name=value")], ...] = ()
    """further options of sbatch, such as `--switches=1`. `--exclude` and `--dependency` are added
    to scalesweep's own; `--requeue`, `--exclusive`, `--gpus-per-node` and `--reservation` replace
    them; options that have a key of their own are refused"""
    startup_minutes: Annotated[Number, Field(gt=0)] = 1.0
    """added to the limit for the start of a job and its end"""
    margin: Annotated[Number, Field(ge=1)] = 2.0
    """the limit of a run whose point has finished runs is their time times this, at most its time
    limit"""
    max_attempts: Annotated[Count, Field(le=20)] = 3
    """jobs of one run in one call of Snakemake, if another attempt may succeed
    ([causes](causes.md))"""
    max_minutes: Minutes = 0.0
    """the longest limit that is requested after TIMEOUT; default: four times `time_limit_minutes`
    """
    staging: Staging = Staging()
    """the job that makes a data set: one task with `stage_workers` CPUs"""

    @property
    def staging_minutes(self) -> float:
        """Limit of the job that makes a data set."""
        return self.staging.minutes

    @property
    def staging_memory_gib(self) -> float:
        """Memory of the job that makes a data set."""
        return self.staging.memory_gib


class PowerSampling(Model):
    """How power is sampled on a site."""

    FORM: ClassVar[str] = "off, or a map of interval_s, sources and sysfs"
    interval_s: Annotated[Number, Field(ge=0.01, le=10)] = 1.0
    """seconds between samples"""
    sources: Annotated[tuple[Annotated[Line, one_of(POWER_SOURCES)], ...], FILLED] = POWER_SOURCES
    """what may be read"""
    sysfs: Annotated[Line, matching("/.*", "an absolute path")] = "/sys"
    """where sysfs is"""


class FrameworkLaunch(Model):
    """Launcher templates of a framework."""

    single: Lines | None = None
    multi: Lines | None = None

    @model_validator(mode="after")
    def _names_one(self) -> "FrameworkLaunch":
        if not self.templates:
            raise ValueError("is empty; write single, multi or both")
        return self

    @property
    def templates(self) -> _Templates:
        """The templates that are given, by name."""
        return {key: words for key, words in (("single", self.single), ("multi", self.multi))
                if words is not None}  # fmt: skip


class Launch(Model):
    """The launcher command: words put before a benchmark's command."""

    single: Lines
    """for one rank"""
    multi: Lines
    """for several. Filled in: `{ranks}`, `{nodes}`, `{ranks_per_node}`, `{cpus_per_rank}`,
    `{python}`, `{bin}` (the folder of `python`), `{launchers}` (`workflow/launchers/`)"""
    torch: FrameworkLaunch | None = None
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
    device: Annotated[Line, one_of(DEVICES)] | None = None
    """what the GPUs of a node are: its
    [data sheet](../methods/utilisation.md#peaks-of-data-sheets), times `gpus_per_node`, fills in
    the rest of `peaks`"""
    flops: Annotated[dict[Annotated[Line, one_of(DTYPES)], _Flops], FILLED] | None = None
    """FLOP/s of a node by type: `float32`, `tf32`, `bfloat16`, `float16`, `float8`"""
    bytes_per_s: _Flops | None = None
    """bytes/s of a node's memory"""


@dataclass(frozen=True)
class Framework:
    """How programs of a framework start on a site: their Python (None: it names none), and the
    launcher templates that replace the site's."""

    python: str | None = None
    launch: _Templates = field(default_factory=dict)


class Site(Model):
    """A site says where to measure: a file in `config/sites/`, of the clone or of your study."""

    name: FileName = Field(alias="site")
    """the file's name; also the folder of its runs in `results/runs/`"""
    description: Line = ""
    """shown in the report"""
    nodes: Count
    """a point takes ceil(ranks / ranks_per_node) of them"""
    cores_per_node: Annotated[
        Count, Short(lambda _: len(os.sched_getaffinity(0)), (type(None),))
    ] = Field(default_factory=lambda: len(os.sched_getaffinity(0)))
    """cores that runs may use; null: this machine's"""
    memory_gib_per_node: Positive | None = None
    """GiB that a job may take of a node"""
    gpus_per_node: Annotated[int, Field(strict=True, ge=0)] = 0
    """requested of every node with `slurm`; a campaign that needs more is refused (0: not known,
    nothing is refused)"""
    memory_gib_per_gpu: Positive | None = None
    """GiB that nvidia-smi calls the total memory of a GPU: the plan says which layouts of a
    transformer will not fit ([memory](../methods/memory.md))"""
    oversubscribe: Flag = False
    """allow more ranks than cores on a node (not with `slurm`)"""
    concurrent_runs: Count | None = None
    """runs at the same time; more than 1 lets them disturb each other on one machine. With `slurm`
    it is 1 (one job after the other) or absent; default: 1, no limit with `slurm`"""
    time_limit_minutes: Minutes = 60.0
    """of one run, if the experiment sets none"""
    pythons: Annotated[Pythons, instead_of(_DEFAULT, str)] = Field(Pythons(), alias="python")
    """a path, or a map of paths: starts the benchmark programs, except those whose benchmark.yaml
    names a `python` of its own. A map names one for each framework, as environments of their own;
    a single one is TensorFlow's ([frameworks](../guide/pytorch.md#where-pytorch-is))"""
    data: Line = "data"
    """data sets are made here"""
    node_local: Line = "/tmp"
    """node-local scratch folder"""
    stage_workers: Count = 2
    """processes that make data files"""
    reserve_disk_gb: Annotated[Number, Field(ge=0)] = 2.0
    """making data sets leaves this much disk free"""
    prologue: Lines = ()
    """shell lines before every run: `module load ...`, `source ...`"""
    env: dict[Variable, Line] = Field({})
    """environment variables of every run; an experiment's `env` takes precedence"""
    programs: dict[ProgramName, Text] = Field({})
    """name -> path of programs of your own that benchmarks start
    ([external programs](../guide/external_programs.md))"""
    launches: Launch | None = Field(None, alias="launch")
    """the launcher command: words put before a benchmark's command, for one rank and for more
    ([launchers](../guide/slurm.md#the-launcher-command)). A benchmark may have its own. A site
    without `launch` holds imported runs only"""
    power: Annotated[PowerSampling | None, Short(lambda _: None, ("off",))] = PowerSampling()
    """`off`, or a map: sampling of power and energy while programs run
    ([energy](../guide/energy.md))"""
    canary: Flag = False
    """check the machine before and after each run, of campaigns that do not say
    ([machine check](../guide/machine_check.md))"""
    ceilings: Folder | None = None
    """results folder of a campaign whose probes measured this machine, for campaigns that have
    none of their own ([machine](../guide/machine.md))"""
    data_sheet: Peaks = Field(Peaks(), alias="peaks")
    """what data sheets state of a node; the dashed lines of rooflines
    ([roofline](../methods/roofline.md))"""
    slurm: SlurmSite | None = None
    """how jobs are requested with `--profile slurm`; `slurm: {}` takes all defaults
    ([Slurm](../guide/slurm.md))"""

    _file: Path = PrivateAttr(Path())

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, given: Any) -> Any:
        """Defaults that depend on other keys."""
        slurm = given.get("slurm") if isinstance(given, Mapping) else None
        if not isinstance(slurm, Mapping):
            # On a cluster each run has its own nodes; on one machine two would disturb each other.
            own = not isinstance(given, Mapping) or "slurm" in given
            return given if own else {"concurrent_runs": 1, **given}
        limit = given.get("time_limit_minutes", 60)
        if not isinstance(limit, int | float):
            return given
        return {**given, "slurm": {"max_minutes": min(4.0 * limit, 1e6), **slurm}}

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> "Site":
        self._file = shown((info.context or {}).get("file", Path()))
        if self.data_sheet.device and not self.gpus_per_node:
            raise WrongKeyError("peaks.device", "a node has no GPUs; set gpus_per_node")
        if self.slurm is None:
            return self
        if self.concurrent_runs not in (1, None):
            raise WrongKeyError(
                "concurrent_runs",
                "with a slurm section it is 1 (one run after the other) or absent (as many as "
                "Slurm starts)",
            )
        if self.oversubscribe:
            raise WrongKeyError(
                "oversubscribe",
                "not with a slurm section; Slurm gives each rank its CPUs (raise cores_per_node to "
                "the hardware threads)",
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
    def launch(self) -> _Templates | None:
        """The launcher templates by name; None: the site starts nothing."""
        if self.launches is None:
            return None
        return {"single": self.launches.single, "multi": self.launches.multi}

    @property
    def frameworks(self) -> Mapping[str, Framework]:
        """What the site says of frameworks, by name."""
        torch, launch = self.pythons.torch, self.launches and self.launches.torch
        said = {_DEFAULT: Framework(self.python)}
        if torch or launch:
            said["torch"] = Framework(torch, launch.templates if launch else {})
        return said

    @property
    def peaks(self) -> Mapping[str, Any]:
        """What data sheets state of a node: ``flops`` by type, ``bytes_per_s``, and ``devices``,
        how many of a node share them where the file names a device; its own numbers come first."""
        stated = self.data_sheet.model_dump(exclude_none=True, exclude={"device"})
        if self.data_sheet.device is None:
            return stated
        count, device = self.gpus_per_node, DEVICES[self.data_sheet.device]
        flops = {dtype: value * count for dtype, value in device.flops.items()}
        return {
            "flops": {**flops, **stated.get("flops", {})},
            "bytes_per_s": stated.get("bytes_per_s", device.bytes_per_s * count),
            "devices": count,
        }

    def nodes_for(self, point: Mapping[str, Any]) -> int:
        """Nodes that a point takes: ceil(ranks / ranks_per_node)."""
        return -(-int(point["ranks"]) // int(point["ranks_per_node"]))

    def check_point(self, point: Mapping[str, Any], where: str) -> None:
        """Raise UserError if the site cannot hold the point's ranks (reads ``PLACEMENT``)."""
        ranks, per_node = int(point["ranks"]), int(point["ranks_per_node"])
        nodes = self.nodes_for(point)
        if nodes > self.nodes:
            raise UserError(
                f"{where}: {ranks} ranks at ranks_per_node = {per_node} take {nodes} nodes, site "
                f"{self.name} has {self.nodes}; ranks_per_node = {-(-ranks // self.nodes)} or "
                "more would fit"
            )
        on_node = self.ranks_on_node(point)
        if on_node > self.cores_per_node and not self.oversubscribe:
            raise UserError(
                f"{where}: {on_node} ranks on a node of {self.cores_per_node} cores; set "
                f"'oversubscribe: true' in {self.file} to allow it"
            )

    def ranks_on_node(self, point: Mapping[str, Any]) -> int:
        """Ranks of the fullest node of a point."""
        return -(-int(point["ranks"]) // self.nodes_for(point))

    def threads_per_core(self, point: Mapping[str, Any], threads: int | None) -> float | None:
        """Threads for each core of a point's fullest node, if each rank has so many (None: not
        known, but at least one).

        Above 1 the node is oversubscribed. None where that is not known, and on a site that starts
        nothing: its ``nodes`` and cores are not those of the machines that its runs were imported
        from.
        """
        if self.launch is None:
            return None
        load = self.ranks_on_node(point) * (threads or 1) / self.cores_per_node
        return None if threads is None and load <= 1 else load

    def python_for(self, framework: str | None) -> str:
        """What starts the programs of a framework; without one, or where the site names no Python
        for it, the site's own."""
        known = self.frameworks.get(framework or "")
        return (known and known.python) or self.python

    def launch_for(self, framework: str | None) -> Mapping[str, tuple[str, ...]]:
        """The launcher templates for programs of a framework; empty if the site starts nothing."""
        known = self.frameworks.get(framework or "", Framework())
        return {**self.launch, **known.launch} if self.launch else {}

    def launcher(
        self,
        point: Mapping[str, Any],
        own: Mapping[str, tuple[str, ...]] | None = None,
        python: str | None = None,
        framework: str | None = None,
    ) -> list[str]:
        """The words put before the program's own command, filled in for a point.

        ``own``: templates of the benchmark, which replace those of the site, and are filled with
        the ``python`` of the program, as those for its ``framework`` are. Raises UserError if the
        site starts nothing.
        """
        if self.launch is None:
            raise UserError(f"{self.file}: has no 'launch', so no run can start there")
        ranks, per_node = int(point["ranks"]), self.ranks_on_node(point)
        name, launch = template_for(ranks), own or self.launch_for(framework)
        replaced = launch[name] is not self.launch[name]
        interpreter = (python or self.python) if replaced else self.python
        values = {
            "ranks": ranks,
            "nodes": self.nodes_for(point),
            "ranks_per_node": per_node,
            "cpus_per_rank": max(1, self.cores_per_node // per_node),
            "python": interpreter,
            "bin": str(Path(interpreter).parent),
            "launchers": str(LAUNCHERS),
        }
        return fill_launcher(launch[name], values, f"{self.file}: launch")


def load_site(name: str, where: str = "site", folder: Path | None = None) -> Site:
    """Read ``config/sites/<name>.yaml`` of the study or the shipped one, or that in ``folder``.

    ``where`` starts the error for an unknown name. Raises UserError for an unknown site or a
    faulty file.
    """
    path = folder / f"{name}.yaml" if folder else find_file(OWN_SITES, SITES, f"{name}.yaml")
    if path is None or not path.is_file():
        files = folder.glob("*.yaml") if folder else file_names(OWN_SITES, SITES, "*.yaml")
        known = sorted({file.stem for file in files})
        raise UserError(f"{where}: no site {name!r}; {choices(name, known)}")
    site = read(Site, load_yaml(path), path)
    if site.name != name:
        raise UserError(f"{path}: site: {site.name!r} differs from the file name {name!r}")
    if site.slurm:
        check_extra(site.slurm.extra, f"{path}: slurm.extra", site.slurm.reservation)
    if site.launch is not None:
        for ranks in (1, 2):
            for framework in (None, *site.frameworks):
                site.launcher({"ranks": ranks, "ranks_per_node": 2}, framework=framework)
    return site


def template_for(ranks: int) -> str:
    """The name of the launcher template of a run of so many ranks."""
    return "single" if ranks == 1 else "multi"
