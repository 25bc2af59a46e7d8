"""Snakemake killed with jobs queued and running: nothing is lost, nothing is measured twice.

The next call comes from another clone, which shares the results folder.
"""

import csv
import itertools
import os
import re
import signal
from functools import partial
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
    axes: {{behaviour: {}, size: {}}}
    fixed: {{ranks: 1, ranks_per_node: 1}}
"""
# One after the other, so that jobs are queued as well as running.
SITE = ("{startup_minutes: 0.5}", "concurrent_runs: 1\n")
QUEUE = ("squeue", "-ho%T")


def queued(cluster: Cluster) -> bool:
    """Whether a job runs and another one waits for it."""
    return sorted(cluster.run(*QUEUE).split()) == ["PENDING", "RUNNING"]


def test_the_next_call_waits_for_what_is_in_the_queue(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = slurm_project(tmp_path / "p", cluster, *SITE)
    text = CAMPAIGN.format("[noisy, exit3, trains]", "[1]")
    project.write("c.yaml", text)
    project.write("hold", "0")  # programs that are good go on once it is gone
    # At most two of the three.
    first = project.start("--configfile", "c.yaml", "--jobs", "2")
    assert wait_until(lambda: queued(cluster), 60)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()

    clone = slurm_project(tmp_path / "clone", cluster, *SITE)
    clone.write("c.yaml", text)
    with clone.run("c.yaml", "--results", str(project.path / "results")) as second:
        waits = "waiting for 2 jobs of an earlier call in Slurm's queue\n"
        assert wait_until(lambda: waits in (clone.path / "out").read_text(), 120)
        (project.path / "hold").unlink()
        assert second.wait(400) == 1
    said = (clone.path / "out").read_text()
    ids = project.run_ids()
    records = project.records()
    # Each run that is done was measured once, in one job.
    assert {run_id: len(project.jobs(run_id)) for run_id in records} == {
        run_id: 1 for behaviour, run_id in ids.items() if behaviour != "exit3"
    }
    assert project.result(ids["noisy"], "record.json")["attempt"] == 1
    # One at a time, across the two calls, and all of them are accounted for.
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    runs = project.path / "results" / "runs" / "toy_cluster"
    since = first_submission(runs)
    assert since is not None
    owners = {i: job.comment for i, job in named(job_name(runs), since).items()}
    with (project.path / "results" / "jobs.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["started"])
    assert owners == {int(row["job_id"]): row["run_id"] for row in rows}
    assert all(a["ended"] <= b["started"] for a, b in itertools.pairwise(rows)), rows
    # What failed before the second call began is run again.
    assert [row["state"] for row in project.jobs(ids["exit3"])] == ["FAILED"] * 2
    assert re.search(r"^failed: NON_ZERO_EXIT: exit code 3: .*exit3", said, re.M), said
    assert "Traceback" not in said


def test_cancelled_jobs_are_over_and_sigterm_leaves_jobs_in_the_queue(
    cluster: Cluster, tmp_path: Path
) -> None:
    project = slurm_project(tmp_path / "p", cluster, *SITE)
    project.write("c.yaml", CAMPAIGN.format("[hang_once]", "[1, 2]"))

    def cancel() -> None:
        cluster.run("scancel", *cluster.run("squeue", "-ho%A").split())

    # A job that somebody cancels, running or queued, is over.
    call = project.watch("--configfile", "c.yaml")
    assert wait_until(lambda: queued(cluster), 60)
    logs = partial(project.path.glob, "results/runs/*/*/attempt-1/stdout.log")
    assert wait_until(lambda: any(path.stat().st_size for path in logs()), 60)
    cancel()
    assert call.wait(60) == 1
    said = (project.path / "out").read_text()
    stopped = re.findall(r"^(\S+): CANCELLED: job \d+ was cancelled by user", said, re.M)
    assert len(set(stopped)) == 2, said
    assert "SLURM status" not in said and "\n    shell:" not in said

    # SIGTERM ends a call at once, its jobs left in the queue: here the first attempt of a run. What
    # a call that is gone leaves unseen, a later one finds in the accounting.
    call = project.start("--configfile", "c.yaml")
    assert wait_until(lambda: len(project.records()) == 1, 60)
    assert wait_until(lambda: cluster.says("RUNNING", *QUEUE), 60)
    call.terminate()
    assert call.wait(10) == 128 + signal.SIGTERM
    # It may not have seen yet that the first one has ended.
    said = (project.path / "out").read_text()
    assert re.search(r"^[12] job\(s\) stay in Slurm's queue", said, re.M), said
    cancel()
    assert wait_until(lambda: cluster.says("", *QUEUE), 30)
    said = project.campaign((project.path / "c.yaml").read_text(), "plan")
    assert "1 done, 1 failed, 0 new" in said
