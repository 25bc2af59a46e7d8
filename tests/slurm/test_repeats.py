"""Repeats until points are precise as jobs of a real Slurm: blocks, a kill between them, budget."""

import os
import signal
from pathlib import Path

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: open
site: toy_cluster
budget_node_hours: BUDGET
experiments:
  e:
    benchmark: toy
    axes: {behaviour: [good, noisy, exit3]}
    fixed: {ranks_per_node: 1, ranks: 1}
    repeats: {min: 3, max: 5, until: 5 %}
    memory_gib_per_rank: 0.1
    time_limit_minutes: 1
"""


def test_blocks_are_submitted_until_precise_after_a_kill_too(
    cluster: Cluster, tmp_path: Path
) -> None:
    project = slurm_project(tmp_path / "p", cluster, "{startup_minutes: 0.5, max_attempts: 1}")
    project.write("c.yaml", CAMPAIGN.replace("BUDGET", "100"))
    with project.run("c.yaml") as snakemake:
        # In the second block.
        assert wait_until(lambda: len(project.records()) >= 7, 120)
        os.killpg(snakemake.pid, signal.SIGKILL)
    before = project.records()
    assert len(before) < 8
    with project.run("c.yaml") as snakemake:
        code = snakemake.wait(400)
    said = (project.path / "out").read_text()
    # A point that fails keeps no other one from its repeats.
    assert code == 1 and "error: 3 runs failed" in said, said
    done = [row["behaviour"] for row in project.plan() if row["status"] == "done"]
    assert sorted(done) == ["good"] * 3 + ["noisy"] * 5
    after = project.records()
    assert {run_id: after[run_id] for run_id in before} == before
    # As many jobs as runs: nothing was measured twice.
    assert sum(len(project.jobs(run_id)) for run_id in after) == 8

    # A block that might exceed the budget is not submitted.
    more = CAMPAIGN.replace("BUDGET", "0.02").replace("max: 5", "max: 6").replace(", exit3", "")
    assert "budget_node_hours: 0.02 node-hours" in project.campaign(more, code=1)
    assert project.records() == after
