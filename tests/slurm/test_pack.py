"""Short runs that share Slurm jobs: each has its own end, whatever is killed around it."""

import csv
import os
import re
import signal
from collections import Counter
from pathlib import Path

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import SlurmProject, slurm_project

pytestmark = needs_slurm

SLURM = "{startup_minutes: 0.2, max_attempts: 3, max_minutes: 0.5, pack: {minutes: 10}}"
CAUSES = """\
campaign: packed
site: toy_cluster
experiments:
  wrong:
    benchmark: toy
    axes: {behaviour: [good, exit3, nan, hang_once, hungry, killed]}
    fixed: &on_one {ranks_per_node: 1, ranks: 1}
    memory_gb_per_rank: 0.1
    time_limit_minutes: 0.1
  wide:
    benchmark: toy
    fixed: {ranks_per_node: 1, ranks: 2}
    memory_gb_per_rank: 0.1
    time_limit_minutes: 0.1
    repeats: 2
"""
LIVE = """\
campaign: packed
site: toy_cluster
experiments:
  many:
    benchmark: toy
    axes: {size: [1, 2, 3, 4]}
    fixed: {ranks_per_node: 1, ranks: 1, threads: 2}
    time_limit_minutes: 0.2
    expected_minutes: 0.02
    repeats: REPEATS
"""


def rows(project: SlurmProject, name: str) -> list[dict[str, str]]:
    with (project.path / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def launchers() -> dict[int, int]:
    """Processes that launch the runs of a pack, with their parents."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"--pack" in (path / "cmdline").read_bytes():
                found[int(path.name)] = int(
                    (path / "stat").read_text().rpartition(") ")[2].split()[1]
                )
        except OSError:
            continue
    return found


def test_every_run_of_a_pack_has_its_own_cause(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster, SLURM)
    project.write("c.yaml", CAUSES)
    code, said = project.slurm("plan", "--configfile", "c.yaml")
    assert code == 0 and "1 of 6 runs" in said and "1 of 2 runs" in said, said
    assert re.search(r"^2 jobs: unknown node-hours expected, 0.167 at most$", said, re.M), said
    assert "without shared allocations 8 jobs: unknown node-hours expected" in said
    code, said = project.slurm("--configfile", "c.yaml")
    ids = project.run_ids()
    assert code == 1 and "Traceback" not in said, said
    jobs = rows(project, "jobs.csv")
    packs = {row["job_id"]: row["run_id"].split() for row in jobs if " " in row["run_id"]}
    assert sorted(map(len, packs.values())) == [2, 6]
    states = {row["behaviour"]: (row["status"], row["cause"]) for row in rows(project, "plan.csv")}
    assert states == {
        **dict.fromkeys(("good", "hang_once", "hungry"), ("done", "")),
        "exit3": ("failed", "NON_ZERO_EXIT"), "nan": ("failed", "BAD_RESULT"),
        "killed": ("failed", "KILLED"),
    }  # fmt: skip
    # What may end better was tried again by its cause, in a job of its own.
    alone = Counter(row["run_id"] for row in jobs if row["job_id"] not in packs)
    assert set(alone) == {ids["hang_once"], ids["hungry"]}
    assert re.search(r": TIMEOUT after 6 s, trying again with \d+ s \(job 2 of 3\)$", said, re.M)
    assert re.search(r": OUT_OF_MEMORY with .*, trying again with .* \(job 2 of 3\)$", said, re.M)
    # One after the other, in the order of the campaign.
    (six,) = (runs for runs in packs.values() if len(runs) == 6)
    place = {row["run_id"]: int(row["position"]) for row in rows(project, "plan.csv")}
    assert six == sorted(six, key=place.__getitem__)
    folder = project.path / "results" / "runs" / "toy_cluster"
    began = [(folder / run / "attempt-1" / "run.json").stat().st_mtime for run in six]
    assert began == sorted(began)
    assert "toy says hello" in (folder / ids["exit3"] / "attempt-1" / "stdout.log").read_text()
    assert project.records().keys() >= {ids["1"], ids["2"]}


def test_what_is_killed_loses_the_run_that_was_measured(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster, SLURM, "prologue: [sleep 1]\n")
    project.write("c.yaml", LIVE.replace("REPEATS", "3"))
    with project.start("--configfile", "c.yaml") as snakemake:
        assert wait_until(lambda: len(project.records()) >= 2, 90)
        os.killpg(snakemake.pid, signal.SIGKILL)
    before = project.records()
    assert len(cluster.run("squeue", "-ho%A").split()) == 1
    for path in project.path.glob("results/runs/*/*/job.json"):
        path.unlink()  # as if it had been killed before it could write them

    # The next call waits for the job; the launcher of one run is killed meanwhile.
    with project.start("--configfile", "c.yaml") as snakemake:
        out = project.path / "out"
        assert wait_until(lambda: "of an earlier snakemake has it" in out.read_text(), 60)
        found: list[int] = []

        def running() -> bool:
            now = launchers()
            found[:] = [pid for pid, parent in now.items() if parent in now]
            return bool(found)

        assert wait_until(running, 30), out.read_text()
        os.kill(found[0], signal.SIGKILL)
        assert snakemake.wait(120) == 1
    said = out.read_text()
    assert said.count("\nfailed: KILLED: ") == 1 and "Traceback" not in said, said
    after = project.records()
    assert {run_id: after[run_id] for run_id in before} == before and len(after) == 11
    (job,) = rows(project, "jobs.csv")
    assert len(job["run_id"].split()) == 12 and job["state"] == "COMPLETED"

    # A node is lost with the runs to come: the same call submits them again.
    project.write("c.yaml", LIVE.replace("REPEATS", "5"))
    with project.start("--configfile", "c.yaml") as snakemake:
        assert wait_until(lambda: len(project.records()) >= 13, 90)
        node = cluster.run("squeue", "-htR", "-o%N").split()[0]
        cluster.kill_node(node)
        assert snakemake.wait(200) == 0, out.read_text()
    cluster.start_nodes(node)
    said = out.read_text()
    assert re.search(r"^toy-\S+: NODE_FAIL: .*, trying again without node\d", said, re.M), said
    assert re.search(r"ended before this run began \(NODE_FAIL\), submitting it again", said)
    done = project.records()
    assert {run_id: done[run_id] for run_id in after} == after and len(done) == 20
    # Nothing was measured twice: a second attempt is of a run that had failed.
    for again in project.path.glob("results/runs/*/*/attempt-2"):
        assert (again / "previous_failure.json").exists(), again
