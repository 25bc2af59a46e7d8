"""`snakemake --profile slurm` on a real Slurm: causes, retries, and what is refused before."""

import re
from functools import partial
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm, run_out
from tests.slurm.support import SlurmProject, slurm_project

pytestmark = needs_slurm


CAUSES = """\
campaign: causes
site: toy_cluster
experiments:
  wrong:
    benchmark: toy
    axes: {behaviour: [good, exit3, nan, slow, hungry]}
    fixed: &on_one {ranks_per_node: 1, ranks: 1}
    memory_gib_per_rank: 0.1
    constraint: cache
    time_limit_minutes: 0.1
  stuck:
    benchmark: toy
    fixed: {<<: *on_one, behaviour: stuck}
    constraint: cache
    time_limit_minutes: 0.5
  on_a_lost_node:
    benchmark: toy
    fixed: {<<: *on_one, behaviour: hang_once}
    constraint: flat
"""


def job_of_the_stuck(project: SlurmProject) -> str:
    """Number of the job whose program has stopped its launcher."""
    told = partial(project.path.glob, "results/runs/*/*/attempt-1/stopped")
    assert wait_until(lambda: any(told()), 60)
    lines = project.cluster.run("squeue", "-htR", "-o%k %A").splitlines()
    return dict(line.split() for line in lines)[next(told()).parts[-3]]


def test_every_cause_is_told_and_decides_on_the_next_try(cluster: Cluster, tmp_path: Path) -> None:
    project = slurm_project(
        tmp_path / "p", cluster, "{startup_minutes: 0.5, max_minutes: 0.5, max_attempts: 3}"
    )
    project.write("c.yaml", CAUSES)
    with project.watch("--configfile", "c.yaml") as snakemake:
        on_flat = ("squeue", "-hwnode3,node4", "-tR", "-o%N %k")
        assert wait_until(lambda: bool(cluster.run(*on_flat).strip()), 60)
        node, comment = cluster.run(*on_flat).split()
        run = project.path / "results" / "runs" / "toy_cluster" / comment
        log = run / "attempt-1" / "stdout.log"
        assert wait_until(lambda: log.exists() and "toy" in log.read_text(), 60)
        with cluster.without_node(node):
            run_out(cluster, job_of_the_stuck(project))
            assert snakemake.wait(300) == 1
    said = (project.path / "out").read_text()
    ids = project.run_ids()

    # Submitted in the order of the campaign, two at a time.
    places = {row["run_id"]: int(row["position"]) for row in project.plan()}
    first_jobs = {run_id: int(project.jobs(run_id)[0]["job_id"]) for run_id in places}
    found = [places[run_id] for run_id in sorted(first_jobs, key=lambda i: first_jobs[i])]
    assert all(abs(place - turn) <= 1 for turn, place in enumerate(found, 1)), found

    # A wrong program is not tried again, nor what has reached the site's longest limit.
    for behaviour, cause, detail in (
        ("exit3", "NON_ZERO_EXIT", "exit code 3: the toy is broken"),
        ("nan", "BAD_RESULT", "local_times holds NaN"),
        ("stuck", "TIMEOUT", "reached its limit of 1 min"),
    ):
        failure = project.result(ids[behaviour], "failure.json")
        assert (failure["cause"], len(project.jobs(ids[behaviour]))) == (cause, 1), failure
        assert detail in failure["detail"]
        assert failure["job_id"] == int(project.jobs(ids[behaviour])[0]["job_id"])
        assert re.search(rf"^failed: {cause}: .*\({ids[behaviour]}\)$", said, re.M), said

    # More of what ran out, or other nodes.
    first, *_, second = project.jobs(ids["slow"])
    assert (first["cause"], second["state"]) == ("TIMEOUT", "COMPLETED")
    asked = project.result(ids["slow"], "record.json")["resources"]["slurm"]
    assert asked["limit_s"] in (12, 24) and asked["job_id"] == int(second["job_id"])
    # On a busy machine its six seconds may be over in between.
    first, *_, second = project.jobs(ids["hungry"])
    assert (first["cause"], second["state"]) == ("OUT_OF_MEMORY", "COMPLETED")
    assert int(second["asked_mem_bytes"]) == 2 * int(first["asked_mem_bytes"])
    first, second = project.jobs(ids["hang_once"])
    assert (first["cause"], second["state"]) == ("NODE_FAIL", "COMPLETED")
    assert {first["node_list"], second["node_list"]} == {"node3", "node4"}
    assert first["node_list"] == node

    report = project.report()
    plan = (project.path / "results" / "plan.csv").read_text()
    for cause in ("NON_ZERO_EXIT", "BAD_RESULT", "TIMEOUT"):
        assert cause in report and cause in plan
    assert "OUT_OF_MEMORY" in report and "NODE_FAIL" in report  # in the table of jobs
    assert "Traceback" not in said
    # In a line each, without the command.
    assert re.search(
        r"^toy-\S+: TIMEOUT after 6 s, trying again with 12 s \(job 2 of 3\)$", said, re.M
    )
    assert re.search(
        r"^toy-\S+: NODE_FAIL: .*, trying again without node[34] \(job 2 of 3\)$", said, re.M
    )
    assert "SLURM status" not in said and "Error in rule run" not in said
    assert "runs: 4 of 7 done, 3 failed" in said

    # The next call runs exactly the failed ones.
    left = re.findall(r" of 7 \((\S+)\)$", project.campaign(CAUSES, "--dry-run"), re.M)
    assert set(left) == {ids[b] for b in ("exit3", "nan", "stuck")}
    said = project.campaign(CAUSES, "plan")
    assert "7 runs, 4 done, 3 failed, 0 new" in said and "node-hours spent" in said


GOOD = """\
campaign: good
site: toy_cluster
experiments:
  e: {benchmark: toy, axes: {ranks: [1, 2, 4]}, fixed: {ranks_per_node: 1}}
"""
COMMANDS = ("sbatch", "squeue", "sinfo", "srun", "sacct", "scontrol", "sacctmgr")
NO_SLURM = {"SLURM_CONF": None}


@pytest.fixture(scope="module")
def project(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> SlurmProject:
    """A project with a site that Slurm refuses, and a folder of all programs but Slurm's."""
    project = slurm_project(tmp_path_factory.mktemp("refused") / "p", cluster)
    sites = project.path / "config" / "sites"
    text = (sites / "toy_cluster.yaml").read_text().replace("site: toy_cluster", "site: poor")
    (sites / "poor.yaml").write_text(text.replace("slurm: {}", "slurm: {account: poor}"))
    (project.path / "bin").mkdir()
    for path in Path("/usr/bin").iterdir():  # Debian's /bin is the same
        if path.name not in COMMANDS:
            (project.path / "bin" / path.name).symlink_to(path)
    project.write("good.yaml", GOOD)
    return project


@pytest.mark.parametrize(
    ("site", "variables", "error"),
    [
        ("poor", {}, "Slurm refuses sbatch --nodes=4 .*--account=poor.*: Invalid account"),
        ("toy_cluster", {"PATH": "bin"}, "sbatch not found .*: run snakemake where Slurm"),
        ("toy_cluster", NO_SLURM, "squeue: "),
    ],
)
def test_what_cannot_run_is_one_line_before_anything_is_submitted(
    project: SlurmProject, site: str, variables: dict[str, str | None], error: str
) -> None:
    call = SlurmProject(project.path, project.cluster, variables)
    code, said = call.slurm("--configfile", "good.yaml", "--config", f"site={site}")
    (line,) = (line for line in said.splitlines() if line.startswith("error: "))
    assert code != 0 and re.search(error, line), line
    assert "Traceback" not in said
    # The plugin makes it for a job's log before it submits.
    assert not (project.path / "results" / "logs" / "slurm").exists()
    assert not project.records()


def test_a_plan_needs_no_word_of_the_queue(project: SlurmProject) -> None:
    call = SlurmProject(project.path, project.cluster, NO_SLURM)
    code, said = call.slurm("plan", "--configfile", "good.yaml")
    assert code == 0 and "3 jobs" in said
