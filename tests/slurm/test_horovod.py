"""srun_gloo.py, which starts Horovod's ranks on Gloo under srun, seen from the shell."""

import itertools
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import REASON, submit, tasks

LAUNCHER = Path(__file__).resolve().parents[2] / "workflow" / "launchers" / "srun_gloo.py"


@pytest.mark.slurm
@pytest.mark.skipif(bool(REASON), reason=str(REASON))
def test_a_rank_that_fails_ends_the_others(cluster: Cluster, tmp_path: Path) -> None:
    words = [sys.executable, str(LAUNCHER), "srun", "--mpi=none", *["-N2", "-n3", "-c1", "--"]]
    words += ["sh", "-c", "[ $HOROVOD_RANK = 1 ] && exit 3; exec sleep 621"]
    job = tmp_path / "job.sh"
    # As Snakemake's plugin starts a job, without most of SLURM_*.
    job.write_text(
        "unset $(compgen -e | grep ^SLURM_ | grep -vx 'SLURM_JOB_ID\\|SLURM_CONF')\n"
        f"{shlex.join(words)}\necho $?\n"
    )
    number = submit(cluster, f"bash {job}", "-N4", "-n8", "-c1")
    assert wait_until(lambda: cluster.says("", "squeue", "-hj", number), 120)
    *said, code = (cluster.folder / f"job-{number}.out").read_text().splitlines()
    assert int(code) > 0
    assert any("task 1: Exited with exit code 3" in line for line in said)
    assert tasks(cluster, "621") == []


@pytest.mark.parametrize("tasks", [[1], [2, 2, 2, 1], [1, 3, 3, 2, 5]], ids=str)
def test_place_of_every_task(tasks: list[int]) -> None:
    """The arithmetic of the shell, against counting."""
    script = runpy.run_path(str(LAUNCHER))["TASK"]
    runs = [(size, len(list(group))) for size, group in itertools.groupby(tasks)]
    layout = ",".join(f"{size}(x{count})" if count > 1 else f"{size}" for size, count in runs)
    for node, size in enumerate(tasks):
        for local in range(size):
            variables = {
                "SLURM_STEP_TASKS_PER_NODE": layout, "SLURM_NODEID": str(node),
                "SLURM_LOCALID": str(local), "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1",
                "SLURMD_NODENAME": "node",
            }  # fmt: skip
            found = subprocess.run(
                ["sh", "-uec", script, "sh", "127.0.0.1", "1", "lo", "env"],
                env={**os.environ, **variables}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            got = dict(line.split("=", 1) for line in found.stdout.splitlines() if "=" in line)
            place = [int(got[f"HOROVOD_{n}"]) for n in ("LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")]
            having = [other for other, count in enumerate(tasks) if count > local]
            assert place == [size, having.index(node), len(having)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "usage: "),
        ("srun -n 2 --", "usage: "),
        ("-- srun -n 2 -- true", "usage: "),
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
