"""Two commits measured alternately in jobs of Slurm: one of each point."""

import re
import subprocess
from pathlib import Path

from scalesweep.core.rank_columns import machine_names
from scalesweep.core.record import read_record
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
    words = ("HEAD~1", "HEAD", "--campaign", "c.yaml", "--profile", "slurm")
    done = project.scalesweep("ab", *words)
    code, said = done.returncode, done.stdout + done.stderr
    assert code == 1 and "Traceback" not in said, said
    assert re.search(r"^regression: steps: size 1: step_time \+(99|100)\.", said, re.M), said
    assert "failed: steps: size 2: new: NON_ZERO_EXIT: exit code 1: no such size" in said, said
    assert "error: 1 point failed" in said and "node-hours expected" in said, said
    (pairs,) = project.path.glob("results/settle/*/verdicts.csv")
    # Of the other point nothing more was measured once a run had failed.
    assert len(list(pairs.parent.glob("**/attempt-1"))) == 10
    for path in (*pairs.parent.glob("*/*/record.json"), *pairs.parent.glob("*/*/*/record.json")):
        record = read_record(path)
        assert record["resources"]["slurm"]["job_id"] and machine_names(record["resources"])
    assert cluster.run("squeue", "-h") == ""
