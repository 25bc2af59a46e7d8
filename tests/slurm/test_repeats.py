"""Repeats until points are precise as jobs of a real Slurm: blocks, and a budget."""

from pathlib import Path

from tests.slurm.cluster import Cluster
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import OFTEN, PROFILE, slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: open
site: toy_cluster
budget_node_hours: BUDGET
experiments:
  e:
    benchmark: toy
    axes: {behaviour: [good, noisy]}
    fixed: {ranks_per_node: 1, ranks: 1}
    repeats: {min: 3, max: 4, until: 5 %}
    memory_gib_per_rank: 0.1
    time_limit_minutes: 1
"""


def test_blocks_are_submitted_until_precise(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster, "{startup_minutes: 0.5, max_attempts: 1}")
    project.take_every_run()
    project.write("c.yaml", CAMPAIGN.replace("BUDGET", "100"))
    called = project.scalesweep("run", "c.yaml", *PROFILE, "--", *OFTEN)
    assert called.returncode == 0, called.stdout + called.stderr
    done = [row["behaviour"] for row in project.plan() if row["status"] == "done"]
    assert sorted(done) == ["good"] * 3 + ["noisy"] * 4
    # As many jobs as runs: nothing was measured twice.
    records = project.records()
    assert sum(len(project.jobs(run_id)) for run_id in records) == 7

    # A block that might exceed the budget is not submitted.
    more = CAMPAIGN.replace("BUDGET", "0.02").replace("max: 4", "max: 5")
    assert "budget_node_hours: 0.02 node-hours" in project.campaign(more, code=1)
    assert project.records() == records
