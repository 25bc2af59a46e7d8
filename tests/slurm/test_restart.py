"""Snakemake killed with jobs queued and running: nothing is lost, nothing is measured twice.

The next call comes from another clone, which shares the results folder.
"""

import csv
import itertools
import os
import re
import signal
from pathlib import Path

import pytest

from scalesweep.slurm.commands import first_submission, job_name
from scalesweep.slurm.sacct import named
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import slurm_project

pytestmark = needs_slurm

CAMPAIGN = """\
campaign: killed
site: toy_cluster
order: as_written
experiments:
  e:
    benchmark: toy
    axes: {{behaviour: [slow, {other}]}}
    fixed: {{ranks: 1, ranks_per_node: 1}}
    repeats: 2
"""


def test_the_next_call_waits_for_what_is_in_the_queue(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One after the other, so that jobs are queued as well as running; at most three of the four.
    project = slurm_project(
        tmp_path / "p", cluster, "{startup_minutes: 0.5}", "concurrent_runs: 1\n"
    )
    project.write("c.yaml", CAMPAIGN.format(other="exit3"))
    first = project.start("--configfile", "c.yaml", "--jobs", "3")
    states = ("squeue", "-ho%T")
    assert wait_until(
        lambda: (
            cluster.run(*states).count("RUNNING") == 1
            and cluster.run(*states).count("PENDING") == 2
        ),
        60,
    )
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    live = cluster.run("squeue", "-ho%A").split()
    assert len(live) in (2, 3)  # one that fails takes a second

    clone = slurm_project(
        tmp_path / "clone", cluster, "{startup_minutes: 0.5}", "concurrent_runs: 1\n"
    )
    clone.write("c.yaml", CAMPAIGN.format(other="exit3"))
    with clone.run("c.yaml", "--results", str(project.path / "results")) as second:
        code = second.wait(400)
    said = (clone.path / "out").read_text()
    ids = project.run_ids()
    assert re.search(r"^waiting for \d jobs? of an earlier call in Slurm's queue$", said, re.M), (
        said
    )
    records = project.records()
    # Each run that is done was measured once, in one job.
    assert [len(project.jobs(run_id)) for run_id in records] == [1, 1]
    assert project.result(ids["slow"], "record.json")["attempt"] == 1
    # One at a time, across the two calls, and all of them are accounted for.
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    runs = project.path / "results" / "runs" / "toy_cluster"
    since = first_submission(runs)
    assert since is not None
    jobs = named(job_name(runs), since)
    owners = {i: job.comment for i, job in jobs.items()}
    with (project.path / "results" / "jobs.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["started"])
    assert owners == {int(row["job_id"]): row["run_id"] for row in rows}
    # One that had failed before the second call began is run again.
    more = [row for row in rows if [one["run_id"] for one in rows].count(row["run_id"]) > 1]
    assert len(rows) - len(more) // 2 == 4 and {row["state"] for row in more} <= {"FAILED"}
    assert all(a["ended"] <= b["started"] for a, b in itertools.pairwise(rows)), rows
    assert len(records) == 2 and ids["slow"] in records
    assert code == 1
    assert re.search(r"^failed: NON_ZERO_EXIT: exit code 3: .*=exit3 \(2 runs\)$", said, re.M), said
    assert "Traceback" not in said

    # A job that somebody cancels, running or queued, is over.
    cancelled = project.watch("--configfile", "c.yaml")
    assert wait_until(lambda: set(cluster.run(*states).split()) == {"RUNNING", "PENDING"}, 60)
    cluster.run("scancel", *cluster.run("squeue", "-ho%A").split())
    assert cancelled.wait(60) == 1
    said = (project.path / "out").read_text()
    stopped = re.findall(r"^\S+: CANCELLED: job \d+ was cancelled by user", said, re.M)
    # The one that runs fails within a second: maybe before it is cancelled.
    failed = re.findall(r"^toy-\S+: NON_ZERO_EXIT", said, re.M)
    assert stopped and len(stopped) + len(failed) == 2, said
    assert "SLURM status" not in said and "\n    shell:" not in said

    # SIGTERM ends a call at once, its jobs left in the queue. What a call that is gone leaves
    # unseen, a later one finds in the accounting.
    again = project.start("--configfile", "c.yaml", "--jobs", "1")
    assert wait_until(lambda: len(cluster.run("squeue", "-ho%A").split()) == 1, 60)
    again.terminate()
    assert again.wait(10) == 128 + signal.SIGTERM
    assert "1 job(s) stay in Slurm's queue" in (project.path / "out").read_text()
    if left := cluster.run("squeue", "-ho%A").split():  # it fails within a second
        cluster.run("scancel", *left)
    assert wait_until(lambda: not cluster.run("squeue", "-ho%A").strip(), 30)
    said = project.campaign(CAMPAIGN.format(other="exit3"), "plan")
    assert "2 done, 2 failed, 0 new" in said
    assert project.records() == records
