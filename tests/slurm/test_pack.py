"""Short runs that share Slurm jobs: each has its own end, whatever fails or is killed around it."""

import csv
import itertools
import json
import os
import re
import signal
from pathlib import Path

from scalesweep.compute.job_spec import ORDER
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm
from tests.slurm.support import SlurmProject, slurm_project, stays

pytestmark = needs_slurm

SLURM = "{startup_minutes: 0.2, pack: {minutes: 60}}"
CAMPAIGN = """\
campaign: packed
site: toy_cluster
experiments:
  wrong:
    benchmark: toy
    axes: {behaviour: [exit3, nan, hang_once]}
    fixed: &on_one {ranks_per_node: 1, ranks: 1}
    time_limit_minutes: 0.05
    expected_minutes: 0.01
  many:
    benchmark: toy
    axes: {size: [2, 3, 4]}
    fixed: {<<: *on_one}
    time_limit_minutes: 3
    expected_minutes: 0.01
    repeats: 3
"""


def rows(project: SlurmProject, name: str) -> list[dict[str, str]]:
    with (project.path / "results" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def at_work(project: SlurmProject) -> int | None:
    """The launcher of a run of many that a pack is at work on."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if b"--pack" in (path / "cmdline").read_bytes():
                stat = (path / "stat").read_text().rpartition(") ")[2]
                parents[int(path.name)] = int(stat.split()[1])
        except OSError:
            continue
    lines = [
        path.read_text().split() for path in project.path.glob("results/runs/*/.packs/*.begun")
    ]
    for run_id in [begun[-1] for begun in lines if begun]:
        (order,) = project.path.glob(f"results/runs/*/{run_id}/order.json")
        if json.loads(order.read_bytes())["params"]["size"] > 1 and run_id not in project.records():
            return next((pid for pid, parent in parents.items() if parent in parents), None)
    return None


def test_every_run_of_a_pack_has_its_own_end(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(tmp_path / "p", cluster, SLURM, "prologue: [sleep 0.7]\n")
    project.write("c.yaml", CAMPAIGN)
    out = project.path / "out"
    # No pack is over before the test has looked at it: its runs wait at so many records.
    hold = project.write("hold", "2")
    with project.start("--configfile", "c.yaml") as snakemake:
        assert wait_until(lambda: len(project.records()) >= 2, 90), out.read_text()
        os.killpg(snakemake.pid, signal.SIGKILL)
    before = project.records()
    (job,) = cluster.run("squeue", "-ho%A").split()
    for path in project.path.glob("results/runs/*/*/job.json"):
        path.unlink()  # as if it had been killed before it could write them

    # The next call waits for the job, in which runs fail, and one loses its launcher. What had
    # failed before is run again meanwhile.
    with project.watch("--configfile", "c.yaml") as snakemake:
        assert wait_until(lambda: "of an earlier snakemake has it" in out.read_text(), 60)
        assert wait_until(lambda: at_work(project) is not None, 60), out.read_text()
        launcher = at_work(project)
        assert launcher is not None
        os.kill(launcher, signal.SIGKILL)
        hold.unlink()
        assert snakemake.wait(120) == 1
    said = out.read_text()
    assert "Traceback" not in said, said
    after = project.records()
    assert {run_id: after[run_id] for run_id in before} == before and len(after) in (8, 9)
    plan = rows(project, "plan.csv")
    causes = {row["behaviour"]: row["cause"] for row in plan if row["experiment"] == "wrong"}
    assert causes.pop("hang_once") in ("TIMEOUT", "")
    assert causes == {"exit3": "NON_ZERO_EXIT", "nan": "BAD_RESULT"}
    (lost,) = (row for row in plan if row["experiment"] == "many" and row["status"] == "failed")
    assert lost["reason"] == "the launcher was ended by SIGKILL before it wrote a result"
    row, *more = rows(project, "jobs.csv")
    assert (row["job_id"], row["state"], len(row["run_id"].split())) == (job, "COMPLETED", 12)
    assert len(more) <= 1
    # One after the other, in the order of the campaign.
    place = {row["run_id"]: int(row["position"]) for row in plan}
    begun = max(project.path.glob("results/runs/*/.packs/*.begun"), key=lambda p: p.stat().st_size)
    assert begun.read_text().split() == sorted(place, key=place.__getitem__)

    # A node is lost with the runs to come: the same call submits them again.
    project.write("c.yaml", CAMPAIGN.replace("repeats: 3", "repeats: 5"))
    project.write("hold", "11")
    with project.watch("--configfile", "c.yaml") as snakemake:
        assert wait_until(lambda: len(project.records()) >= 10, 90), out.read_text()
        node = cluster.run("squeue", "-htR", "-o%N").split()[0]
        try:
            cluster.kill_node(node)
            hold.unlink()
            assert snakemake.wait(200) == 1
        finally:
            cluster.start_nodes(node)
    said = out.read_text()
    assert re.search(r"^toy-\S+: NODE_FAIL: .*, trying again without node\d", said, re.M), said
    assert re.search(r"ended before this run began \(NODE_FAIL\), submitting it again", said)
    done = project.records()
    assert {run_id: done[run_id] for run_id in after} == after and len(done) == 16
    states = {row["behaviour"]: row["status"] for row in rows(project, "plan.csv")}
    assert states == {"good": "done", "hang_once": "done", "exit3": "failed", "nan": "failed"}
    # Nothing was measured twice: a second attempt is of a run that had failed.
    for again in project.path.glob("results/runs/*/*/attempt-2"):
        assert (again / "previous_failure.json").exists(), again


AT_ONCE = """\
campaign: at_once
site: toy_cluster
experiments:
  sizes:
    benchmark: toy
    axes: {ranks: [1, 2]}
    fixed: {ranks_per_node: 1}
    time_limit_minutes: 1
    expected_minutes: 0.01
    repeats: 3
"""


def test_runs_at_the_same_time_share_no_node(cluster: Cluster, tmp_path: Path) -> None:
    """What hangs or fails among them: tests/unit/compute/test_pack.py."""
    slurm = "{startup_minutes: 0.2, pack: {minutes: 10, nodes: 4}}"
    project = slurm_project(tmp_path / "p", cluster, slurm, "prologue: [sleep 0.5]\n")
    project.write("c.yaml", AT_ONCE)
    code, said = project.slurm("--configfile", "c.yaml", "--until", "run")
    assert code == 0, said
    there = stays(project)
    assert sorted(len(one.nodes) for one in there) == [1] * 3 + [2] * 3, said
    together = [pair for pair in itertools.combinations(there, 2) if pair[0].overlaps(pair[1])]
    assert together and all(one.nodes.isdisjoint(other.nodes) for one, other in together)
    # All of them in one job, in the campaign's order: none overtakes another one.
    (begun,) = project.path.glob("results/runs/*/.packs/*.begun")
    lines = [line.split() for line in begun.read_text().splitlines()]
    orders = [json.loads((begun.parents[1] / line[0] / ORDER).read_bytes()) for line in lines]
    assert [order["order"]["position"] for order in orders] == [1, 2, 3, 4, 5, 6]
    assert {run_id: set(nodes.split(",")) for run_id, nodes in lines} == {
        one.run_id: one.nodes for one in there
    }
    # What others took of the cores is never made up: here jobs have no control group, and runs of
    # this pack are on other nodes than their launcher.
    for path in begun.parents[1].glob("*/record.json"):
        load = json.loads(path.read_bytes())["load"]
        assert load["others"] is None
        assert "no control group" in load["missing"] or "other nodes" in load["missing"], load
