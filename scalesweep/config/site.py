"""Sites: the machine a campaign runs on, and how a program is started there."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scalesweep.analysis.device_peaks import DEVICES
from scalesweep.compute.power.domains import POWER_SOURCES
from scalesweep.config.launcher_template import fill_launcher
from scalesweep.config.sbatch_options import check_extra
from scalesweep.config.study import OWN_SITES, file_names, find_file, shown
from scalesweep.config.yaml_loader import check_schema, load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import CHECKOUT, LAUNCHERS, SITES

_DEFAULT = "tensorflow"  # the framework of a single Python
PLACEMENT = frozenset({"ranks", "ranks_per_node"})  # parameters of every benchmark


@dataclass(frozen=True, slots=True)
class SlurmSite:
    """How jobs are asked for on a site with Slurm (docs/reference/site.md has the keys)."""

    account: str
    partition: str
    qos: str
    constraint: str
    reservation: str
    gres: str
    exclusive: bool
    requeue: bool
    extra: tuple[str, ...]
    startup_minutes: float
    margin: float
    max_attempts: int
    max_minutes: float
    staging_minutes: float
    staging_memory_gib: float


@dataclass(frozen=True, slots=True)
class PowerSampling:
    """How power is sampled on a site (docs/reference/site.md has the keys)."""

    interval_s: float
    sources: tuple[str, ...]
    sysfs: str


@dataclass(frozen=True, slots=True)
class Framework:
    """How programs of a framework start on a site: their Python (None: it names none), and the
    launcher templates that replace the site's."""

    python: str | None = None
    launch: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """A machine: size, launcher templates, folders and limits (keys: docs/reference/site.md)."""

    name: str
    file: Path  # as a person would type it
    nodes: int
    cores_per_node: int
    memory_gib_per_node: float | None
    gpus_per_node: int
    memory_gib_per_gpu: float | None
    oversubscribe: bool
    concurrent_runs: int | None
    time_limit_minutes: float
    python: str
    data: str
    node_local: str
    stage_workers: int
    reserve_disk_gb: float
    prologue: tuple[str, ...]
    env: Mapping[str, str]
    programs: Mapping[str, str]
    launch: Mapping[str, tuple[str, ...]] | None
    frameworks: Mapping[str, "Framework"]  # by name, those that the site says something of
    power: PowerSampling | None
    slurm: SlurmSite | None
    canary: bool = False  # runs are between two looks at their machine, unless the campaign says no
    ceilings: str | None = None  # results folder of a campaign whose probes measured the site
    islands_per_node: int = 1  # sockets or NVLink islands, among which a node's ranks are divided
    nodes_per_switch_group: int = 0  # not known: 0
    peaks: Mapping[str, Any] = field(default_factory=dict)  # of a node, as data sheets state them
    memory_limit_gib_per_rank: float | None = None

    @property
    def memory_limit_bytes(self) -> int | None:
        """Bytes that a process of a rank may have of its own, in whole KiB; None: no limit."""
        gib = self.memory_limit_gib_per_rank
        return None if gib is None else max(1, round(gib * 2**20)) * 2**10

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
    content = load_yaml(path)
    check_schema(content, "site", path)
    if content["site"] != name:
        raise UserError(f"{path}: site: {content['site']!r} differs from the file name {name!r}")
    site = Site(
        name=name,
        file=shown(path),
        nodes=content["nodes"],
        cores_per_node=content.get("cores_per_node") or len(os.sched_getaffinity(0)),
        memory_gib_per_node=content.get("memory_gib_per_node"),
        gpus_per_node=content.get("gpus_per_node", 0),
        memory_gib_per_gpu=content.get("memory_gib_per_gpu"),
        oversubscribe=content.get("oversubscribe", False),
        # On a cluster each run has its own nodes; on one machine two would disturb each other.
        concurrent_runs=content.get("concurrent_runs", None if "slurm" in content else 1),
        time_limit_minutes=float(content.get("time_limit_minutes", 60)),
        python=_pythons(content)[_DEFAULT],
        data=content.get("data", "data"),
        node_local=content.get("node_local", "/tmp"),
        stage_workers=content.get("stage_workers", 2),
        reserve_disk_gb=float(content.get("reserve_disk_gb", 2)),
        prologue=tuple(content.get("prologue", [])),
        env=content.get("env", {}),
        programs=content.get("programs", {}),
        launch=_templates(content.get("launch")),
        frameworks=_frameworks(content),
        power=_power(content),
        slurm=_slurm(content, path),
        canary=content.get("canary", False),
        ceilings=content.get("ceilings"),
        islands_per_node=content.get("islands_per_node", 1),
        nodes_per_switch_group=content.get("nodes_per_switch_group", 0),
        peaks=_peaks(content, path),
        memory_limit_gib_per_rank=content.get("memory_limit_gib_per_rank"),
    )
    if site.launch is not None:
        for ranks in (1, 2):
            for framework in (None, *site.frameworks):
                site.launcher({"ranks": ranks, "ranks_per_node": 2}, framework=framework)
    return site


def _peaks(content: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """What data sheets state of a node: ``flops`` by type, ``bytes_per_s``, and ``devices``, how
    many of a node share them where the file names a device; its own numbers come first."""
    stated = {key: value for key, value in content.get("peaks", {}).items() if key != "device"}
    if "device" not in content.get("peaks", {}):
        return stated
    count = content.get("gpus_per_node", 0)
    if not count:
        raise UserError(f"{path}: peaks.device: a node has no GPUs; set gpus_per_node")
    device = DEVICES[content["peaks"]["device"]]
    flops = {dtype: value * count for dtype, value in device.flops.items()}
    return {
        "flops": {**flops, **stated.get("flops", {})},
        "bytes_per_s": stated.get("bytes_per_s", device.bytes_per_s * count),
        "devices": count,
    }


def _pythons(content: Mapping[str, Any]) -> dict[str, str]:
    """The Pythons that a site file names, by framework."""
    python = content.get("python")
    if not isinstance(python, dict):
        return {_DEFAULT: python or sys.executable}
    named = {name: _located(path) for name, path in python.items() if path is not None}
    return {_DEFAULT: sys.executable, **named}


def _located(program: str) -> str:
    """A path made absolute: of the working folder if it is there, else of scalesweep's checkout, if
    there is one; a word without a slash is left for the shell to find."""
    if "/" not in program and not program.startswith("~"):
        return program
    path = Path(program).expanduser()
    return str(path.absolute() if path.exists() else (CHECKOUT or Path.cwd()) / path)


def _templates(launch: Mapping[str, Any] | None) -> Mapping[str, tuple[str, ...]] | None:
    """The launcher templates of a map that may hold those of frameworks too."""
    if launch is None:
        return None
    return {name: tuple(words) for name, words in launch.items() if isinstance(words, list)}


def _frameworks(content: Mapping[str, Any]) -> dict[str, Framework]:
    """What a site file says of each framework."""
    pythons, launch = _pythons(content), content.get("launch") or {}
    parts = {name: part for name, part in launch.items() if isinstance(part, dict)}
    return {
        name: Framework(pythons.get(name), _templates(parts.get(name)) or {})
        for name in pythons | parts
    }


def _power(content: Mapping[str, Any]) -> PowerSampling | None:
    """The ``power`` section of a site file; None if it is off."""
    section = content.get("power", {})
    if section == "off":
        return None
    return PowerSampling(
        interval_s=float(section.get("interval_s", 1)),
        sources=tuple(section.get("sources", POWER_SOURCES)),
        sysfs=section.get("sysfs", "/sys"),
    )


def _slurm(content: Mapping[str, Any], path: Path) -> SlurmSite | None:
    """The ``slurm`` section of a site file; None if there is none."""
    if "slurm" not in content:
        return None
    section = content["slurm"] or {}
    staging = section.get("staging", {})
    if content.get("concurrent_runs", 1) != 1:
        raise UserError(
            f"{path}: concurrent_runs: with a slurm section it is 1 (one run after the other) or "
            "absent (as many as Slurm starts)"
        )
    if content.get("oversubscribe"):
        raise UserError(
            f"{path}: oversubscribe: not with a slurm section; Slurm gives each rank its CPUs "
            "(raise cores_per_node to the hardware threads)"
        )
    check_extra(section.get("extra", []), f"{path}: slurm.extra", section.get("reservation") or "")
    return SlurmSite(
        **{
            name: section.get(name) or ""
            for name in ("account", "partition", "qos", "constraint", "reservation", "gres")
        },
        exclusive=section.get("exclusive", False),
        requeue=section.get("requeue", False),
        extra=tuple(section.get("extra", [])),
        startup_minutes=float(section.get("startup_minutes", 1)),
        margin=float(section.get("margin", 2)),
        max_attempts=section.get("max_attempts", 3),
        max_minutes=float(section.get("max_minutes", 4 * content.get("time_limit_minutes", 60))),
        staging_minutes=float(staging.get("minutes", 60)),
        staging_memory_gib=float(staging.get("memory_gib", 4)),
    )


def template_for(ranks: int) -> str:
    """The name of the launcher template of a run of so many ranks."""
    return "single" if ranks == 1 else "multi"
