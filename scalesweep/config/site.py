"""Sites: the machine a campaign runs on, and how a program is started there."""

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.config.command_template import fill
from scalesweep.config.models import (
    Count,
    FileName,
    Flag,
    Folder,
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
    read,
)
from scalesweep.config.site_keys import (
    DEFAULT,
    TORCH,
    Container,
    Launch,
    Peaks,
    PowerSampling,
    Pythons,
    SlurmSite,
    Templates,
)
from scalesweep.config.study import OWN_SITES, file_names, named_file, shown
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.paths import LAUNCHERS, SITES


class Site(Model):
    """A site says where to measure: a file in `config/sites/`, of the clone or of your study."""

    name: FileName = Field(alias="site")
    """the file's name; also the folder of its runs in `results/runs/`"""
    description: str = ""
    """shown in the report"""
    nodes: Count
    """a point takes ceil(ranks / ranks_per_node) of them"""
    cores_per_node: Annotated[
        Count, Short(lambda _: len(os.sched_getaffinity(0)), (type(None),))
    ] = Field(None, validate_default=True)
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
    pythons: Annotated[Pythons, instead_of(DEFAULT, str)] = Field(
        Pythons.model_construct(), alias="python"
    )
    """a path, or a map of paths: starts the benchmark programs, except those whose benchmark.yaml
    names a `python` of its own. A map names one for each framework, as environments of their own;
    a single one is TensorFlow's ([frameworks](../guide/pytorch.md#where-pytorch-is))"""
    data: str = "data"
    """data sets are made here"""
    node_local: str = "/tmp"
    """node-local scratch folder"""
    stage_workers: Count = 2
    """processes that make data files"""
    reserve_disk_gb: Annotated[Number, Field(ge=0)] = 2.0
    """making data sets leaves this much disk free"""
    prologue: tuple[str, ...] = ()
    """shell lines before every run: `module load ...`, `source ...`"""
    env: dict[Variable, str] = Field({})
    """environment variables of every run; an experiment's `env.NAME` takes precedence"""
    programs: dict[ProgramName, Text] = Field({})
    """name -> path of programs of your own that benchmarks start
    ([external programs](../guide/external_programs.md))"""
    launch: Launch | None = None
    """the launcher command: words put before a benchmark's command, for one rank and for more
    ([launchers](../guide/slurm.md#the-launcher-command)). A benchmark may have its own. A site
    without `launch` holds imported runs only"""
    container: Container = ()
    """words that start a container, put after the launcher's: `[apptainer, exec, image.sif]`.
    `python` is then the image's ([containers](../guide/containers.md))"""
    power: Annotated[PowerSampling | None, Short(lambda _: None, ("off",))] = (
        PowerSampling.model_construct()
    )
    """`off`, or a map: sampling of power and energy while programs run
    ([energy](../guide/energy.md))"""
    ceilings: Folder | None = None
    """results folder of a campaign whose probes measured this machine, for campaigns that have
    none of their own ([machine](../guide/machine.md))"""
    data_sheet: Peaks = Field(Peaks.model_construct(), alias="peaks")
    """what data sheets state of a node; the dashed lines of rooflines
    ([roofline](../methods/roofline.md))"""
    slurm: SlurmSite | None = None
    """how jobs are requested with `--profile slurm`; `slurm: {}` takes all defaults
    ([Slurm](../guide/slurm.md))"""

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
    def peaks(self) -> Mapping[str, Any]:
        """What data sheets state of a node: ``flops`` by type, ``bytes_per_s``, and ``devices``,
        how many of a node share them where the file names a device; its own numbers come first."""
        stated = self.data_sheet.model_dump(exclude_none=True, exclude={"device"})
        if self.data_sheet.device is None:
            return stated
        count, device = self.gpus_per_node, DEVICES[self.data_sheet.device]
        flops = {dtype: value * count for dtype, value in device.flops.items()}
        flops |= stated.get("flops", {})
        usual = {"bytes_per_s": device.bytes_per_s * count, "devices": count}
        return {**usual, **stated, "flops": flops}

    def nodes_for(self, point: Mapping[str, Any]) -> int:
        """Nodes that a point takes: ceil(ranks / ranks_per_node)."""
        return -(-int(point["ranks"]) // int(point["ranks_per_node"]))

    def check_point(self, point: Mapping[str, Any], where: str) -> None:
        """Raise UserError if the site cannot hold the point's ranks."""
        ranks, per_node = int(point["ranks"]), int(point["ranks_per_node"])
        nodes = self.nodes_for(point)
        if nodes > self.nodes:
            raise UserError(
                f"{where}: {ranks} ranks at ranks_per_node = {per_node} take {nodes} nodes, site "
                f"{self.name} has {self.nodes}: set ranks_per_node: {-(-ranks // self.nodes)}"
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
        known, but at least one); above 1 the node is oversubscribed.

        None where it is not known, and of imported runs: their machines are not this site.
        """
        load = self.ranks_on_node(point) * (threads or 1) / self.cores_per_node
        return None if self.launch is None or (threads is None and load <= 1) else load

    def own_python(self, framework: str | None) -> str | None:
        """The Python that the site names for a framework."""
        return self.pythons.torch if framework == TORCH else self.python

    def python_for(self, framework: str | None) -> str:
        """What starts the programs of a framework; the site's own where it names none for it."""
        return self.own_python(framework) or self.python

    def launch_for(self, framework: str | None) -> Templates:
        """The launcher templates for programs of a framework; empty if the site starts nothing."""
        if self.launch is None:
            return {}
        own = self.launch.torch if framework == TORCH else None
        return {**self.launch.model_dump(exclude={TORCH}), **(own or {})}

    def launcher(
        self,
        point: Mapping[str, Any],
        own: Templates | None = None,
        python: str | None = None,
        framework: str | None = None,
        container: Sequence[str] | None = None,
    ) -> list[str]:
        """The words put before the program's own command, filled in for a point.

        ``own``: templates of the benchmark, which replace those of the site, and are filled with
        the ``python`` of the program, as those for its ``framework`` are. ``container``: its words,
        instead of the site's. Raises UserError if the site starts nothing.
        """
        if self.launch is None:
            raise UserError(f"{self.file}: has no 'launch', so no run can start there")
        name, per_node = template_for(int(point["ranks"])), self.ranks_on_node(point)
        template = (own or self.launch_for(framework))[name]
        replaced = template != getattr(self.launch, name)
        interpreter = (python if replaced else None) or self.python
        values = {
            "ranks": int(point["ranks"]),
            "nodes": self.nodes_for(point),
            "ranks_per_node": per_node,
            "cpus_per_rank": max(1, self.cores_per_node // per_node),
            "python": interpreter,
            "bin": str(Path(interpreter).parent),
            "launchers": str(LAUNCHERS),
        }
        words = [fill(word, values, f"{self.file}: launch") for word in template]
        return [*words, *(self.container if container is None else container)]


def load_site(name: str, where: str = "site", folder: Path | None = None) -> Site:
    """Read ``config/sites/<name>.yaml`` of the study or the shipped one, or that in ``folder``.

    ``where`` starts the error for an unknown name. Raises UserError for an unknown site or a
    faulty file.
    """
    files = folder.glob("*.yaml") if folder else file_names(OWN_SITES, SITES, "*.yaml")
    path = named_file("site", name, files, where)
    site = read(Site, load_yaml(path), path)
    if site.name != name:
        raise UserError(f"{path}: site: {site.name!r} differs from the file name {name!r}")
    for ranks, framework in product((1, 2), (DEFAULT, TORCH)) if site.launch else ():
        site.launcher({"ranks": ranks, "ranks_per_node": 2}, framework=framework)
    return site


def template_for(ranks: int) -> str:
    """The name of the launcher template of a run of so many ranks."""
    return "single" if ranks == 1 else "multi"
