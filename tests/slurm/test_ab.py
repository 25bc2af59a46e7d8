"""Two commits measured alternately in one allocation of Slurm, by the line that is shown."""

import re
import subprocess
import sys
from pathlib import Path

from tests.fakes.tracked import BENCHMARK as TRACKED
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

# A rank on a node, and a program that fails at one size.
BENCHMARK = TRACKED.replace("default: 8", "default: 1").replace(
    '{program:tracked}"', '{program:tracked}", "{size}"'
)
CAMPAIGN = """\
campaign: nightly
site: toy_cluster
programs: {tracked: program/main.py}
experiments:
  steps: {benchmark: tracked, axes: {size: [1, 2]}, repeats: 3, time_limit_minutes: 1}
"""
PROGRAM = """\
import os, sys

if sys.argv[1] == "2" and WRONG:
    sys.exit("no such size")
print(f"step: {STEP + os.getpid() % 100 / 1e5} s")
"""


def test_ab_in_jobs(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster, "{startup_minutes: 0.2}")
    (project.path / "benchmarks" / "tracked").mkdir(parents=True)
    project.write("benchmarks/tracked/benchmark.yaml", BENCHMARK)
    project.write("c.yaml", CAMPAIGN)
    program = project.path / "program"
    program.mkdir()
    git = ["git", "-C", str(program), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    for step, wrong in ((1, False), (2, True)):
        text = PROGRAM.replace("STEP", str(step)).replace("WRONG", str(wrong))
        (program / "main.py").write_text(text)
        subprocess.run([*git, "add", "main.py"], check=True)
        subprocess.run([*git, "commit", "-qm", f"Step {step}"], check=True)
    words = ("HEAD~1", "HEAD", "--campaign", "c.yaml")
    outside = project.scalesweep("ab", *words)
    assert outside.returncode == 1 and "in one allocation of Slurm: sbatch" in outside.stderr
    (line,) = re.findall(r"Slurm: (sbatch .*)", outside.stderr)
    submit = ["bash", "-c", f"{line} --wait --output=ab.log"]
    environment = {**project.environment()}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    code = subprocess.run(submit, cwd=project.path, env=environment, check=False).returncode
    said = (project.path / "ab.log").read_text()
    assert code == 1 and "Traceback" not in said, said
    assert re.search(r"^regression: steps: size 1: step_time \+(99|100)\.", said, re.M), said
    assert "failed: steps: size 2: new: NON_ZERO_EXIT: exit code 1: no such size" in said, said
    assert "error: 1 point failed" in said, said
    (pairs,) = project.path.glob("results/ab/*/verdicts.csv")
    # Of the other point nothing more was measured once a run had failed.
    assert len(list(pairs.parent.glob("**/attempt-1"))) == 10
    assert cluster.run("squeue", "-h") == ""
