"""Horovod under srun, on Gloo and on MPI, in batch steps such as those that Snakemake makes."""

import itertools
import json
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import MPI, needs_slurm, submit, tasks, why_no_mpi

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
LAUNCHER = WORKFLOW / "launchers" / "srun_gloo.py"
BENCHMARK = WORKFLOW / "benchmarks" / "data_loading"
DECLARED = yaml.safe_load((BENCHMARK / "benchmark.yaml").read_text())
DEFAULTS = {name: spec["default"] for name, spec in DECLARED["parameters"].items()}
SMALL = {
    "sample_shape": [8, 8, 8, 4],
    "samples_per_rank": 4,
    "validation_samples_per_rank": 2,
    "batch_size": 2,
    "epochs": 2,
}
GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}


needs_mpi = pytest.mark.skipif(bool(why_no_mpi()), reason=why_no_mpi())


def srun(nodes: int, ranks: int, mpi: str = "none") -> list[str]:
    return ["srun", f"--mpi={mpi}", *f"-N {nodes} -n {ranks} -c 1".split()]


def on_gloo(nodes: int, ranks: int, *options: str) -> list[str]:
    return [sys.executable, str(LAUNCHER), *options, *srun(nodes, ranks), "--"]


def run_job(cluster: Cluster, script: str, seconds: float) -> str:
    """Run a script as Snakemake's plugin does, without most of SLURM_*; what it prints."""
    strip = "unset $(compgen -e | grep ^SLURM_ | grep -vx 'SLURM_JOB_ID\\|SLURM_CONF')"
    path = Path(tempfile.mkdtemp(dir=cluster.folder)) / "job.sh"
    path.write_text(f"#!/bin/bash\n{strip}\n{script}\n")
    job = submit(cluster, f"bash {path}", "-N4", "-n8", "-c1")
    done = wait_until(lambda: cluster.says("", "squeue", "-hj", job), seconds)
    said = (cluster.folder / f"job-{job}.out").read_text()
    assert done, said
    return said


@dataclass
class Ended:
    """A benchmark's run: exit code of its launcher and what it wrote."""

    code: int
    out: Path

    def native(self) -> dict[str, Any]:
        native: dict[str, Any] = json.loads((self.out / "native.json").read_text())
        return native


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set for up to four ranks."""
    path = tmp_path_factory.mktemp("runs")
    identity = {name: DEFAULTS[name] for name in DECLARED["data"]["parameters"]}
    words = [sys.executable, BENCHMARK.parent, "cosmoflow_data.dataset", "--out", path / "set"]
    words += ["--train", "16", "--valid", "8"]
    words += ["--params", json.dumps(identity | {"sample_shape": SMALL["sample_shape"]})]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    return path


def run_all(
    cluster: Cluster,
    folder: Path,
    env: dict[str, str],
    launches: dict[str, tuple[list[str], dict[str, Any]]],
) -> dict[str, Ended]:
    """Run the benchmark in one job, once for each name: with launch words and parameters."""
    script = [f"export {name}={value}" for name, value in env.items()]
    for name, (launcher, params) in launches.items():
        content = {
            **{"run_id": name, "benchmark": "data_loading", "version": 1, "repeat": 0},
            "params": DEFAULTS | SMALL | params,
            "data": str(folder / "set"),
            "out": str(folder / name),
            "node_local": str(folder / "local"),
        }
        run_file = folder / f"{name}.json"
        run_file.write_text(json.dumps(content))
        program = [sys.executable, str(BENCHMARK.parent), "data_loading"]
        words = [*launcher, *program, "--run", str(run_file)]
        script.append(f"{shlex.join(words)}\necho {name} ended $?")
    said = run_job(cluster, "\n".join(script), 240)
    lines = [line.split() for line in said.splitlines() if " ended " in line]
    ended = {name: Ended(int(code), folder / name) for name, _, code in lines}
    assert ended.keys() == launches.keys(), said
    return ended


def check(run: Ended, controller: str, nodes: list[str]) -> None:
    """Whether all is there that a run on these nodes, one for each rank, has to write."""
    assert run.code == 0
    native, ranks = run.native(), len(nodes)
    assert native["resources"]["slurm_nodes"] == nodes
    assert len(native["resources"]["hosts"]) == ranks
    facts = native["environment"]["ranks"]
    assert len({rank["pid"] for rank in facts}) == ranks
    for rank in facts:
        assert rank.keys() >= {"host", "affinity", "inter_threads", "intra_threads"}
        assert rank["affinity"]
    assert native["notes"]["exchange"]["backend"] == controller
    assert native["notes"]["exchange"]["local_ranks"] == nodes.count(nodes[0])
    mpi = native["environment"]["versions"]["mpi"]
    assert mpi.startswith("Open MPI v") if controller == "mpi" else mpi is None
    with np.load(run.out / "samples.npz") as arrays:
        assert {array.shape for array in arrays.values()} == {(SMALL["epochs"], ranks)}


def of_ranks(ranks: int, **params: Any) -> dict[str, Any]:
    return {"ranks": ranks, "ranks_per_node": 1, **params}


class TestBenchmark:
    pytestmark = needs_slurm

    def test_on_gloo(self, cluster: Cluster, folder: Path) -> None:
        launches = {
            "one": (srun(1, 1), of_ranks(1)),
            "two": (on_gloo(2, 2), of_ranks(2)),
            "uneven": (on_gloo(2, 3), of_ranks(3, ranks_per_node=2)),
            "four": (on_gloo(4, 4), of_ranks(4)),
            "missing": (on_gloo(2, 2), of_ranks(2, samples_per_rank=64)),
        }
        ended = run_all(cluster, folder, GLOO, launches)
        check(ended["one"], "gloo", ["node1"])
        check(ended["two"], "gloo", ["node1", "node2"])
        check(ended["uneven"], "gloo", ["node1", "node1", "node2"])
        check(ended["four"], "gloo", ["node1", "node2", "node3", "node4"])
        error = json.loads((ended["missing"].out / "native_error.json").read_text())
        assert error["exit_code"] == 66
        assert ended["missing"].code > 0

    @needs_mpi
    def test_on_mpi(self, cluster: Cluster, folder: Path) -> None:
        # Without the option, a rank that fails leaves the others waiting for it.
        launches = {
            f"mpi{n}": ([*srun(n, n, "pmix"), "--kill-on-bad-exit=1"], of_ranks(n))
            for n in (1, 2, 4)
        }
        ended = run_all(cluster, folder, MPI, launches)
        # Open MPI was seen to die at its start where cores were short, before our code had begun.
        dead = {name for name, run in ended.items() if run.code and not run.out.exists()}
        if dead:
            ended |= run_all(cluster, folder, MPI, {name: launches[name] for name in dead})
        for number in (1, 2, 4):
            nodes = [f"node{node + 1}" for node in range(number)]
            check(ended[f"mpi{number}"], "mpi", nodes)
        kept = ended["mpi4"].native()["environment"]["variables"]
        assert kept["OMPI_MCA_mpi_yield_when_idle"] == "1"


class TestLauncher:
    """Without Horovod: what srun_gloo.py does, seen from the shell."""

    pytestmark = needs_slurm

    def test_a_rank_that_fails_ends_the_others(self, cluster: Cluster) -> None:
        words = [*on_gloo(2, 3), "sh", "-c", "[ $HOROVOD_RANK = 1 ] && exit 3; exec sleep 621"]
        *said, code = run_job(cluster, f"{shlex.join(words)}\necho $?", 30).splitlines()
        assert int(code) > 0
        assert any("task 1: Exited with exit code 3" in line for line in said)
        assert tasks(cluster, "621") == []


@pytest.mark.parametrize(
    "tasks",
    [[1], [3], [1] * 5, [2, 1], [2, 2, 2, 1], [1, 3, 3, 2, 2, 1, 12]],
    ids=str,
)
def test_place_of_every_task(tasks: list[int]) -> None:
    """The arithmetic of the shell, against counting."""
    script = runpy.run_path(str(LAUNCHER))["TASK"]
    runs = [(size, len(list(group))) for size, group in itertools.groupby(tasks)]
    layout = ",".join(f"{size}(x{count})" if count > 1 else f"{size}" for size, count in runs)
    for node, size in enumerate(tasks):
        for local in range(size):
            variables = {
                "SLURM_STEP_TASKS_PER_NODE": layout,
                "SLURM_NODEID": str(node),
                "SLURM_LOCALID": str(local),
            }
            found = subprocess.run(
                ["sh", "-uec", script, "sh", "127.0.0.1", "1", "lo", "env"],
                env={**os.environ, "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}
                | {"SLURMD_NODENAME": "node"} | variables,
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            got = dict(line.split("=", 1) for line in found.stdout.splitlines() if "=" in line)
            place = [int(got[f"HOROVOD_{n}"]) for n in ("LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")]
            having = [other for other, count in enumerate(tasks) if count > local]
            assert place == [size, having.index(node), len(having)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "usage: "),
        ("srun -n 2", "usage: "),
        ("srun -n 2 --", "usage: "),
        ("-- srun -n 2 -- true", "usage: "),
        ("--interface", "usage: "),
        ("--interface none_such srun -- true", "no interface 'none_such' with an IPv4 address"),
        ("srun -- true", "SLURM_JOB_ID is not set: not in a Slurm job"),
        ("--interface lo no_srun -- true", "cannot start no_srun: No such file or directory"),
    ],
)
def test_bad_use_is_one_line(words: str, message: str) -> None:
    environment = {name: v for name, v in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        [sys.executable, str(LAUNCHER), *words.split()],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (1 if "no_srun" in words else 2)
    assert done.stderr.startswith(f"error: srun_gloo: {message}")
    assert done.stderr.count("\n") == 1
