"""What queues and nodes do to a campaign: full and suspended at once, for Slurm takes its time."""

import re
from functools import partial
from pathlib import Path

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: trouble
site: toy_cluster
order: as_written
experiments:
  e:
    benchmark: toy
    axes: {size: [1, 2, 3, 4]}
    fixed: {ranks: 1, ranks_per_node: 1}
"""


def test_a_full_queue_is_waited_for_and_options_hold(cluster: Cluster, tmp_path: Path) -> None:
    """MaxSubmitJobs, --exclude of the site, and a job that is suspended while it runs."""
    options = "{startup_minutes: 0.5, extra: ['--exclude=node1', '--exclude=node3']}"
    project = slurm_project(tmp_path / "p", cluster, options)
    project.write("c.yaml", CAMPAIGN)
    hold = project.path / "hold"
    hold.write_text("0")  # programs go on once it is gone
    cluster.run("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxSubmitJobsPerUser=2")
    try:
        with project.watch("--configfile", "c.yaml", "--until", "run") as snakemake:
            running = partial(cluster.run, "squeue", "-htR", "-o%A")
            assert wait_until(lambda: len(running().split()) == 2, 60)
            job = running().split()[0]
            logs = partial(project.path.glob, "results/runs/*/*/attempt-1/stdout.log")
            assert wait_until(lambda: sum(path.stat().st_size > 0 for path in logs()) == 2, 60)
            cluster.run("scontrol", "suspend", job)
            assert wait_until(lambda: "SUSPENDED" in cluster.run("squeue", "-ho%T"), 20)
            limit = "; submitting again until Slurm takes it"
            assert wait_until(lambda: limit in (project.path / "out").read_text(), 60)
            hold.unlink()
            # The others run one after the other meanwhile.
            assert wait_until(lambda: len(project.records()) == 3, 90)
            cluster.run("scontrol", "resume", job)
            assert snakemake.wait(200) == 0, (project.path / "out").read_text()
    finally:
        cluster.run("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxSubmitJobsPerUser=-1")
    said = (project.path / "out").read_text()
    assert said.count(limit) == 1
    assert "not submitted" not in said and len(project.records()) == 4
    # As its launcher saw it, or as Slurm did where that ended before.
    (run_id,) = re.findall(r"^(\S+): SUSPENDED: (?:stopped|job \d+ was suspended)", said, re.M)
    # The record is that of the second attempt, which nothing stopped.
    assert project.result(run_id, "record.json")["attempt"] == 2
    ids = [path.stem for path in project.path.glob("results/logs/slurm/*/*/*.log")]
    nodes = cluster.run("sacct", "-nXP", f"-j{','.join(ids)}", "--format=nodelist").split()
    assert len(nodes) == len(ids) == 5 and set(nodes) <= {"node2", "node4"}
