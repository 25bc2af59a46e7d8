"""A study of one's own on Slurm: the doctor first, then a run, from the study's folder alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.slurm.cluster import Cluster
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import SITE, SlurmProject

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: two_nodes
site: mine
experiments:
  points:
    benchmark: monte_carlo
    fixed: {ranks: 2, ranks_per_node: 1, points: 1000}
"""
# No TensorFlow there, and none is needed.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or "python3"


def test_doctor_and_run_in_a_study(cluster: Cluster, tmp_path: Path) -> None:
    study = SlurmProject(tmp_path / "study", cluster)
    words = [Path(sys.executable).with_name("scalesweep"), "study", study.path]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    study.write("config/config.yaml", CAMPAIGN)
    site = SITE.replace("toy_cluster", "mine").replace("srun, ", "srun, --label, ")
    study.write("config/sites/mine.yaml", f"{site}python: {PYTHON}\nslurm: {{}}\n")

    done = study.scalesweep("doctor", "--profile", "slurm")
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    lines = re.findall(r"^(ok|warning|failed|skipped) +([^:]+): (.*)$", said, re.MULTILINE)
    states = {name: (state, detail) for state, name, detail in lines}
    assert len(states) == len(lines)
    assert "config/sites/mine.yaml); runs are jobs of Slurm" in said
    assert states["sbatch"][1].startswith("Slurm accepts the largest request: --nodes=2 --ntasks=2")
    assert states["results folder"] == ("ok", f"{study.path}/results is seen from node1, node2")
    assert states["launcher"] == ("ok", "2 ranks on node1, node2 started")
    assert "TensorFlow" not in states["software"][1]
    assert not study.cluster.run("squeue", "-h", "--name=scalesweep-doctor").strip()

    code, said = study.slurm("--until", "run")
    assert code == 0, said
    (record,) = study.results().values()
    assert record["study"] is None  # in no repository
    assert record["resources"]["slurm"]["nodes"] == 2
    assert str(study.path / "benchmarks" / "monte_carlo" / "monte_carlo.py") in record["command"]


def test_a_sweep_runs_as_jobs_by_one_line(cluster: Cluster, tmp_path: Path) -> None:
    words = ("--ranks", "1,2", "--repeats", "1", "--slurm", "--", "sleep", "0.3")
    done = SlurmProject(tmp_path, cluster).scalesweep("sweep", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    runs = SlurmProject(tmp_path / "sweep", cluster).results().values()
    nodes = {run["point"]["ranks"]: run["resources"]["slurm"]["nodes"] for run in runs}
    assert nodes == {1: 1, 2: 2}
    # Of a command of which nothing is read its wall time is measured.
    assert all(run["metrics"]["wall_time"]["value"] > 0.3 for run in runs)
