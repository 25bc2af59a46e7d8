"""The doctor on this machine, with stand-ins for a site's Python, launcher and Slurm."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scalesweep.commands import doctor
from scalesweep.compute.doctor import nodes
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING, Check
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.paths import REPO
from scalesweep.core.visible import visible
from scalesweep.doctor import place, slurm
from scalesweep.jobs.node_faults import NodeFaults
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
# As of an environment with PyTorch: what its two programs would print.
TORCH_PYTHON = """#!/bin/sh
case $1 in
*software.py) echo '@doctor {"python": "3.12", "executable": "/t/python", "numpy": "2", "wrong": {},
"torch": "2.13", "torch_build": {"distributed": true, "gloo": true, "nccl": false, "mpi": false,
"cuda": null, "gpus": 0}}' | tr -d '\\n' ;;
*) echo '@doctor {"rank": '$HOROVOD_RANK', "size": 2, "host": "n1", "cpus": ['$HOROVOD_RANK'],
"torch": {"rank": '$HOROVOD_RANK', "size": 2, "sum": 3, "order": [0, 1], "on": "gloo"}}' \\
    | tr -d '\\n' ;;
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


def outcomes(campaign: Campaign, cluster: bool = False, checks: int = 16) -> dict[str, Check]:
    found = list(doctor.examine(campaign, cluster))
    assert len({check.name for check in found}) == len(found) == checks
    assert all("\n" not in doctor.line_of(check) for check in found)
    return {check.name: check for check in found}


def test_a_site_without_slurm_and_horovod(make: Make) -> None:
    found = outcomes(make())
    assert {name: check.state for name, check in found.items()} == {
        "srun and PMIx": SKIPPED, "sbatch": SKIPPED,
        "nodes of earlier jobs": SKIPPED, "compute nodes": OK, "results folder": OK,
        "file system": found["file system"].state, "clocks": SKIPPED,
        "load": found["load"].state, "programs": OK,
        "GPUs": found["GPUs"].state, "power counters": SKIPPED, "Python": OK,
        "TensorFlow": SKIPPED, "Horovod": SKIPPED, "launcher": OK, "core binding": OK,
    }  # fmt: skip
    assert found["Python"].detail == "3.9.1 (/opt/python), NumPy 1.9"
    assert found["launcher"].detail.startswith("2 ranks on ")
    for name in ("TensorFlow", "Horovod"):
        assert found[name].detail == "no benchmark of this campaign is known to need it"
    assert doctor.line_of(found["sbatch"]).startswith("skipped  sbatch: ")


def test_pytorch_is_looked_at_where_a_benchmark_trains_with_it(make: Make) -> None:
    campaign = make(torchpython=TORCH_PYTHON)
    shutil.copytree("benchmarks/toy", "benchmarks/toytorch")
    path = Path("benchmarks/toytorch/benchmark.yaml")
    text = path.read_text().replace("name: toy", "name: toytorch", 1)
    path.write_text(f"{text}framework: torch\n")
    plain, site = Path("c.yaml").read_text(), Path("sites/toy.yaml")
    trains = "  t: {benchmark: toytorch, fixed: {ranks: 2, ranks_per_node: 2}}\n"
    Path("c.yaml").write_text(f"{plain[: plain.index('  e:')]}{trains}")
    lacking = outcomes(load_campaign(Path("c.yaml")), checks=14)
    assert lacking["PyTorch"].state == FAILED and lacking["programs"].state == OK
    assert "add 'python: {torch: PATH}' to it" in lacking["PyTorch"].detail
    assert lacking["launcher"].detail == lacking["core binding"].detail == "needs PyTorch"

    own = f"python: {{tensorflow: {campaign.site.python}, torch: torchpython}}"
    site.write_text(site.read_text().replace(f"python: {campaign.site.python}", own))
    Path("c.yaml").write_text(f"{plain}{trains}")
    both = outcomes(load_campaign(Path("c.yaml")), checks=19)
    assert both["Python"].detail == "3.9.1 (/opt/python), NumPy 1.9"
    assert both["TensorFlow"].state == SKIPPED
    assert both["PyTorch"].state == OK
    assert both["PyTorch"].detail.startswith("2.13 in Python 3.12 (/t/python), NumPy 2; built with")
    assert both["launcher"].detail.endswith("started")
    assert both["launcher (torch)"].detail == (
        "2 ranks on n1 exchange data through torch.distributed over gloo"
    )
    assert both["core binding (torch)"].state == OK


@pytest.mark.slow
def test_each_failure_names_its_mend_and_hinders_no_other(make: Make) -> None:
    found = outcomes(make(launch="no-such-launcher", more="prologue: ['false']\n"))
    assert found["Python"].state == FAILED and "prologue" in found["Python"].mend
    assert found["TensorFlow"].detail == found["Horovod"].detail == "needs Python"
    assert found["launcher"].state == FAILED
    assert "launch.multi in " in found["launcher"].mend
    assert found["core binding"].detail == "needs launcher"
    assert found["results folder"].state == OK
    twice = 'export HOROVOD_RANK=0; "$@"; exec "$@"'
    alone = outcomes(make(launch="twice", twice=twice))
    assert alone["launcher"].detail.startswith("2 processes started, each as rank 0")


@pytest.mark.slow
def test_a_queue_that_is_full(make: Make, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "QUEUE_S", 0.1)
    campaign = make(more="slurm: {}\n", **SLURM)
    faults = NodeFaults(campaign.runs_folder)
    faults.note_lost(["node7"], "NODE_FAIL", 12)
    faults.keep()
    found = outcomes(campaign, cluster=True)
    avoided = found["nodes of earlier jobs"]
    assert (
        avoided.state == WARNING and "node7: NODE_FAIL in job 12, avoided until" in avoided.detail
    )
    assert avoided.mend.endswith("delete results/runs/toy/.nodes.json")
    assert found["compute nodes"].state == WARNING
    assert found["compute nodes"].detail == "no node within 0.1 s (Slurm: Resources)"
    assert found["launcher"].detail == "needs compute nodes"
    assert (toy / "cancelled").read_text() == "77\n"
    assert found["sbatch"].state == OK and "--nodes=2 --ntasks=4" in found["sbatch"].detail
    assert found["srun and PMIx"].state == WARNING  # there, but without PMIx


def test_a_job_that_ends_without_a_word(
    make: Make, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "LATE_S", 0.1)
    log = "for w; do case $w in --output=*) echo 'slurmstepd: no folder' > ${w#*=} ;; esac; done"
    fakes = {**SLURM, "squeue": "true", "sbatch": f"{log}; echo 78"}
    found = outcomes(make(more="slurm: {}\n", **fakes), cluster=True)
    assert found["compute nodes"].state == FAILED
    assert found["compute nodes"].detail.endswith("without an answer: slurmstepd: no folder")
    assert found["results folder"].detail == "needs compute nodes"


def test_what_slurm_refuses_is_told_with_its_words(make: Make) -> None:
    fakes = {
        **SLURM, "sbatch": "echo 'sbatch: error: invalid account' >&2; exit 1",
        "srun": "echo 'srun: fatal: no configuration' >&2; exit 1",
    }  # fmt: skip
    launch = '"srun", "--mpi=pmix", "-n", "{ranks}"'
    found = outcomes(make(launch=launch, more="slurm: {}\n", **fakes), cluster=True)
    assert found["sbatch"].state == found["compute nodes"].state == FAILED
    assert "--ntasks=4" in found["sbatch"].detail and "invalid account" in found["sbatch"].detail
    assert found["srun and PMIx"].detail == "srun --mpi=list: srun: fatal: no configuration"
    (check,) = slurm.examine_srun(make(launch=launch, **SLURM).site, False)
    assert check.detail == "launch asks for --mpi=pmix; srun offers none, pmi2"


def test_a_launcher_that_is_srun_where_there_is_none(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make(launch='"srun", "-n", "{ranks}"').site
    monkeypatch.setenv("PATH", "/nowhere")
    (check,) = slurm.examine_srun(site, False)
    assert (check.state, check.detail) == (FAILED, "srun: not found on this machine")
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


def test_a_program_that_is_not_there_fails(make: Make) -> None:
    campaign = make(launch="no-such-launcher")
    found = outcomes(campaign)["programs"]
    assert found.state == FAILED and "starts runs with 'no-such-launcher'" in found.detail
    # A path of the campaign's own; on a cluster's nodes it may be there.
    path = Path("benchmarks/toy/benchmark.yaml")
    content = yaml.safe_load(path.read_text())
    content["command"] = ["{program:train}"]
    path.write_text(yaml.safe_dump(content))
    Path("c.yaml").write_text(Path("c.yaml").read_text() + "programs: {train: ./train.py}\n")
    (check,) = doctor.examine_programs(load_campaign(Path("c.yaml")), cluster=True)
    assert check.state == FAILED and "toy: programs.train: " in check.detail
    assert "no such file" in check.detail and "c.yaml" in check.mend
    Path("train.py").touch()
    (check,) = doctor.examine_programs(load_campaign(Path("c.yaml")), cluster=True)
    assert check.state == OK


@pytest.mark.parametrize(
    ("loads", "state"),
    [
        ([[16.0, 2]], WARNING), ([[0.3, 2]], OK), ([[1.9, 2]], OK),
        ([[60.0, 128], [40.0, 64]], WARNING), ([[60.0, 128], [20.0, 64]], OK),
    ],
)  # fmt: skip
def test_a_machine_at_work_is_a_warning(loads: list[list[float]], state: str) -> None:
    check = nodes.judge_load([{"host": f"n{i}", "load": one} for i, one in enumerate(loads)])
    assert check.state == state and bool(check.mend) == (state == WARNING)
    load, cpus = max(loads, key=lambda one: one[0] / one[1])
    assert f"{load:.1f} processes" in check.detail and f"the {cpus} CPUs of n" in check.detail


def test_a_host_that_names_itself_in_escapes_is_shown(make: Make) -> None:
    check = nodes.judge_load([{"host": "n\x1b[2J\u202e", "load": [16.0, 2]}])
    assert visible(doctor.line_of(check)).count("n\\x1b[2J\\u202e") == 1
