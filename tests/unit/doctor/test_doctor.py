"""The doctor: what it makes of what ranks say, and whole calls with a stand-in for Slurm."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scalesweep.commands import doctor
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.doctor import probe
from scalesweep.doctor.judge import FAILED, OK, WARNING, Check, judge
from scalesweep.doctor.probe import Part, Said
from tests.conftest import ROOT

LAUNCHER = f'"{sys.executable}", {ROOT}/tests/foreign/launcher.py, "{{ranks}}"'
SLURM = {
    "sbatch": 'case "$*" in *--test-only*) exit 0 ;; esac; echo 77',
    "squeue": 'echo "77|PENDING||scalesweep-doctor|Resources|"',
    "scancel": "echo $1 >> $FAKES/cancelled",
    "sinfo": 'echo "main*|infinite|(null)"',
    "srun": "true",
    "sacct": "true",
}
MET = {"size": 2, "sum": 3.0, "on": "Gloo", "nccl": False, "gpus": 0}
WARNED = (WARNING, FAILED)

Make = Callable[..., Campaign]


@pytest.fixture
def make(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A campaign of the toy at a site with these lines; the working folder is its own."""
    bin_folder = toy / "bin"
    bin_folder.mkdir()
    monkeypatch.chdir(toy)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKES", str(toy))

    def campaign(launch: str = LAUNCHER, more: str = "", **fakes: str) -> Campaign:
        for name, text in fakes.items():
            (bin_folder / name).write_text(f"#!/bin/sh\n{text}")
            (bin_folder / name).chmod(0o755)
        (toy / "sites" / "toy.yaml").write_text(
            f"site: toy\nnodes: 2\ncores_per_node: 2\npython: {sys.executable}\n"
            f"launch: {{single: [], multi: [{launch}]}}\n{more}"
        )
        (toy / "c.yaml").write_text(
            "campaign: c\nsite: toy\nexperiments:\n"
            "  e: {benchmark: toy, axes: {ranks: [1, 4]}, fixed: {ranks_per_node: 2}}\n"
        )
        return load_campaign(Path("c.yaml"))

    return campaign


def outcomes(campaign: Campaign, cluster: bool = False) -> dict[str, Check]:
    checks = list(doctor.examine(campaign, cluster))
    assert all("\n" not in doctor.line_of(check) for check in checks)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def rank(number: int = 0, **more: Any) -> dict[str, Any]:
    """What a rank says."""
    versions = {"numpy": "2.0"}
    return {
        "rank": number, "host": "n1", "cpus": [number], "python": "3.9 (/py)", "gpus": [],
        "versions": versions, "wrong": {}, "token": "t",
    } | more  # fmt: skip


def both(**more: Any) -> list[dict[str, Any]]:
    return [rank(0, **more), rank(1, **more)]


NO_TORCH = {"torch": "ModuleNotFoundError: No module named 'torch'"}


@pytest.mark.parametrize(
    ("ranks", "asked", "name", "state", "words"),
    [
        (both(), {}, "launcher", OK, "2 ranks on n1 started"),
        (both(), {}, "software", OK, "3.9 (/py), NumPy 2.0"),
        (both(), {}, "core binding", OK, "1 CPUs per rank asked for: 1 CPUs (0) on n1; 1 CPUs (1)"),
        (both(cpus=[0]), {}, "core binding", WARNING, "ranks share CPUs"),
        (both(), {"cpus_per_rank": 2}, "core binding", WARNING, "2 CPUs per rank asked for"),
        ([rank()], {}, "launcher", FAILED, "1 of 2 ranks started"),
        (both(rank=0), {}, "launcher", FAILED, "2 processes started, each as rank 0: each alone"),
        (both(rank=None), {}, "launcher", OK, "2 ranks on n1 started"),
        (both(token="x"), {}, "results folder", FAILED, "n1 does not see /r: another folder"),
        (both(), {"gpus": 1}, "GPUs", FAILED, "n1 shows 0, s.yaml says 1"),
        (both(gpus=["A", "A"]), {"gpus": 1}, "GPUs", WARNING, "n1 shows 2, s.yaml says 1"),
        (both(gpus="nvidia-smi: no driver"), {"gpus": 1}, "GPUs", FAILED, "n1: nvidia-smi: no dr"),
        (
            both(exchange=MET), {"needs": "horovod"}, "launcher", OK,
            "2 ranks on n1 exchange data through Horovod over Gloo",
        ),
        (both(exchange=MET | {"size": 1}), {"needs": "torch"}, "launcher", FAILED, "do not"),
        (
            both(exchange=MET | {"sum": 2.0}), {"needs": "horovod"}, "launcher", FAILED,
            "wrong result of an exchange over Gloo: 2 for 3",
        ),
        (
            both(wrong={"horovod.tensorflow": "OSError: libmpi.so"}), {"needs": "horovod"},
            "software", FAILED, "Horovod: OSError: libmpi.so",
        ),
        (both(wrong=NO_TORCH), {"needs": "torch"}, "software", FAILED, "PyTorch: not installed"),
        (both(exchange=MET), {"needs": "torch", "gpus": 1}, "software", FAILED, "uses 0 GPUs"),
        (
            both(exchange=MET | {"gpus": 1}), {"needs": "horovod", "gpus": 1}, "software", WARNING,
            "without NCCL",
        ),
        (
            [rank(exchange_error="rank 1 of 2 did not join")], {"needs": "torch"}, "launcher",
            FAILED, "1 of 2 ranks answer: rank 1 of 2 did not join",
        ),
    ],
)  # fmt: skip
def test_judges(
    ranks: list[dict[str, Any]], asked: dict[str, Any], name: str, state: str, words: str
) -> None:
    site: Any = SimpleNamespace(file="s.yaml", gpus_per_node=asked.get("gpus", 0))
    started: Any = {"folder": "/r/.doctor/t/probe", "argv": ["run"], "env": {}}
    needs, cpus = asked.get("needs", ""), asked.get("cpus_per_rank", 1)
    part = Part(needs, "", True, cpus, started)
    checks = {check.name: check for check in judge(site, part, Said(ranks, ""), "t", True)}
    assert checks[name].state == state and words in checks[name].detail
    assert bool(checks[name].mend) == (state in WARNED)


def test_a_site_without_slurm(make: Make) -> None:
    checks = outcomes(make())
    assert [*checks] == ["programs", "results folder", "GPUs", "software", "launcher"]
    assert checks["launcher"].detail.startswith("2 ranks on ")
    assert checks["software"].detail.startswith(".".join(map(str, sys.version_info[:3])))
    failed = outcomes(make(more="prologue: ['echo no module >&2; false']\n"))
    assert [*failed] == ["programs", "launcher"]
    assert failed["launcher"].detail == "exit code 1: no module"
    assert "prologue" in failed["launcher"].mend


def test_slurm_without_a_free_node_or_without_an_answer(
    make: Make, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "QUEUE_S", 0.1)
    monkeypatch.setattr(probe, "_LOOK_S", 0.2)
    checks = outcomes(make(more="slurm: {}\n", **SLURM), cluster=True)
    assert checks["launcher"].detail == "no node within 0.1 s (Slurm: Resources)"
    assert (toy / "cancelled").read_text() == "77\n"
    assert checks["sbatch"].state == OK and "--nodes=2 --ntasks=4" in checks["sbatch"].detail
    log = "for w; do case $w in --output=*) echo 'slurmstepd: no folder' > ${w#*=} ;; esac; done"
    fakes = {**SLURM, "squeue": "true", "sbatch": f"{log}; echo 78"}
    checks = outcomes(make(more="slurm: {}\n", **fakes), cluster=True)
    assert checks["launcher"].detail.endswith("without an answer: slurmstepd: no folder")
    fakes = {**SLURM, "sbatch": "echo 'sbatch: error: invalid account' >&2; exit 1"}
    checks = outcomes(make(more="slurm: {}\n", **fakes), cluster=True)
    assert checks["sbatch"].state == checks["launcher"].state == FAILED
    assert "--ntasks=4" in checks["sbatch"].detail and "invalid account" in checks["sbatch"].detail
