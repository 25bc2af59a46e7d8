"""The doctor on this machine, with stand-ins for a site's Python, launcher and Slurm."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.paths import REPO
from scalesweep.doctor import examine, place, slurm
from tests.conftest import ROOT

LAUNCHER = f'"{sys.executable}", {ROOT}/tests/foreign/launcher.py, "{{ranks}}"'
# Prints what workflow/doctor/software.py would, and is the real Python for everything else.
PYTHON = f"""#!/bin/sh
case $1 in
*software.py) echo '@doctor {{"python": "3.9.1", "executable": "/opt/python", "numpy": "1.9",
"wrong": {{"horovod": "ModuleNotFoundError: No module named horovod"}}, "tensorflow": "2.11",
"horovod": null}}' | tr -d '\\n' ;;
*) exec {sys.executable} "$@" ;;
esac
"""
SLURM = {
    "sbatch": 'case "$*" in *--test-only*) exit 0 ;; esac; echo 77',
    "squeue": 'echo "PENDING|Resources"',
    "scancel": "echo $1 >> $FAKES/cancelled",
    "sinfo": 'echo "main*|infinite|(null)"',
    "srun": "printf 'srun: MPI types are...\\nsrun: none\\nsrun: pmi2\\n' >&2",
}

Make = Callable[..., Campaign]


@pytest.fixture
def make(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A campaign of the toy at a site with these lines; the working folder is its own."""
    bin_folder = toy / "bin"
    bin_folder.mkdir()
    monkeypatch.chdir(toy)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKES", str(toy))

    def programs(**texts: str) -> None:
        for name, text in texts.items():
            (bin_folder / name).write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}")
            (bin_folder / name).chmod(0o755)

    def campaign(launch: str = LAUNCHER, more: str = "", **fakes: str) -> Campaign:
        programs(sitepython=PYTHON, **fakes)
        (toy / "sites" / "toy.yaml").write_text(
            f"site: toy\nnodes: 2\ncores_per_node: 2\npython: {bin_folder}/sitepython\n"
            f"launch: {{single: [], multi: [{launch}]}}\npower: off\n{more}"
        )
        (toy / "c.yaml").write_text(
            "campaign: c\nsite: toy\nexperiments:\n"
            "  e: {benchmark: toy, axes: {ranks: [1, 4]}, fixed: {ranks_per_node: 2}}\n"
        )
        return load_campaign(Path("c.yaml"))

    return campaign


def outcomes(campaign: Campaign, cluster: bool = False) -> dict[str, Check]:
    found = list(examine.examine(campaign, cluster))
    assert len({check.name for check in found}) == len(found) == 13
    assert all("\n" not in examine.line_of(check) for check in found)
    return {check.name: check for check in found}


def test_a_site_without_slurm_and_horovod(make: Make) -> None:
    found = outcomes(make())
    assert {name: check.state for name, check in found.items()} == {
        "srun and PMIx": SKIPPED, "sbatch": SKIPPED, "compute nodes": OK, "results folder": OK,
        "file system": found["file system"].state, "clocks": SKIPPED,
        "GPUs": found["GPUs"].state, "power counters": SKIPPED, "Python": OK, "TensorFlow": OK,
        "Horovod": SKIPPED, "launcher": OK, "core binding": OK,
    }  # fmt: skip
    assert found["Python"].found == "3.9.1 (/opt/python), NumPy 1.9"
    assert found["launcher"].found.startswith("2 ranks on ")
    assert found["Horovod"].found.startswith("not installed; no benchmark of this campaign")
    assert examine.line_of(found["sbatch"]).startswith("skipped  sbatch: ")


def test_each_failure_names_its_mend_and_hinders_no_other(make: Make) -> None:
    found = outcomes(make(launch="no-such-launcher", more="prologue: ['false']\n"))
    assert found["Python"].state == FAILED and "prologue" in found["Python"].mend
    assert found["TensorFlow"].found == found["Horovod"].found == "needs Python"
    assert found["launcher"].state == FAILED
    assert "launch.multi in " in found["launcher"].mend
    assert found["core binding"].found == "needs launcher"
    assert found["results folder"].state == OK
    twice = 'export HOROVOD_RANK=0; "$@"; exec "$@"'
    alone = outcomes(make(launch="twice", twice=twice))
    assert alone["launcher"].found.startswith("2 processes started, each as rank 0")


def test_a_queue_that_is_full(make: Make, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "QUEUE_S", 0.1)
    found = outcomes(make(more="slurm: {}\n", **SLURM), cluster=True)
    assert found["compute nodes"].state == WARNING
    assert found["compute nodes"].found == "no node within 0.1 s (Slurm: Resources)"
    assert found["launcher"].found == "needs compute nodes"
    assert (toy / "cancelled").read_text() == "77\n"
    assert found["sbatch"].state == OK and "--nodes=2 --ntasks=4" in found["sbatch"].found
    assert found["srun and PMIx"].state == WARNING  # there, but without PMIx


def test_a_job_that_ends_without_a_word(
    make: Make, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "LATE_S", 0.1)
    log = "for w; do case $w in --output=*) echo 'slurmstepd: no folder' > ${w#*=} ;; esac; done"
    fakes = {**SLURM, "squeue": "true", "sbatch": f"{log}; echo 78"}
    found = outcomes(make(more="slurm: {}\n", **fakes), cluster=True)
    assert found["compute nodes"].state == FAILED
    assert found["compute nodes"].found.endswith("without an answer: slurmstepd: no folder")
    assert found["results folder"].found == "needs compute nodes"


def test_what_slurm_refuses_is_told_with_its_words(make: Make) -> None:
    fakes = {
        **SLURM, "sbatch": "echo 'sbatch: error: invalid account' >&2; exit 1",
        "srun": "echo 'srun: fatal: no configuration' >&2; exit 1",
    }  # fmt: skip
    launch = '"srun", "--mpi=pmix", "-n", "{ranks}"'
    found = outcomes(make(launch=launch, more="slurm: {}\n", **fakes), cluster=True)
    assert found["sbatch"].state == found["compute nodes"].state == FAILED
    assert "--ntasks=4" in found["sbatch"].found and "invalid account" in found["sbatch"].found
    assert found["srun and PMIx"].found == "srun --mpi=list: srun: fatal: no configuration"
    (check,) = slurm.examine_srun(make(launch=launch, **SLURM).site, False)
    assert check.found == "launch asks for --mpi=pmix; srun offers none, pmi2"


def test_a_launcher_that_is_srun_where_there_is_none(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make(launch='"srun", "-n", "{ranks}"').site
    monkeypatch.setenv("PATH", "/nowhere")
    (check,) = slurm.examine_srun(site, False)
    assert (check.state, check.found) == (FAILED, "srun: not found on this machine")
    assert "login node" in check.mend


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n"
            "specific pmix plugin versions available: pmix_v3,pmix_v4\n",
            ["none", "pmi2", "pmix", "pmix_v3", "pmix_v4"],
        ),
        ("srun: MPI types are...\nsrun: cray_shasta\nsrun: none\n", ["cray_shasta", "none"]),
        ("srun: error: no such thing\n", []),
    ],
)
def test_mpi_types(text: str, found: list[str]) -> None:
    assert slurm.mpi_types(text) == found


def test_programs_of_the_doctor_run_in_any_python(tmp_path: Path) -> None:
    """They lie outside of the library, and need nothing of it."""
    for name in ("software.py", "rank.py"):
        text = (REPO / "workflow" / "doctor" / name).read_text()
        assert "scalesweep" not in text
        compile(text, name, "exec", dont_inherit=True)
    assert shutil.which("sh")
