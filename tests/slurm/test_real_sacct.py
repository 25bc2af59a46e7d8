"""What the accounting of a real Slurm says of jobs is read right."""

import os
import sys

import pytest

from scalesweep.compute.failure_cause import Said
from scalesweep.core.errors import UserError
from scalesweep.slurm.sacct import Job, cause_of, named, query, settled
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.jobs import needs_slurm

pytestmark = needs_slurm

MIB = 2**20
EAT = "import sys, time; x = b'x' * int(sys.argv[1]) * 1_000_000; time.sleep(60)"
# Each way to end: a script, and what it asks for.
SCRIPTS = {
    "completed": ("srun --mpi=none sleep 2", "-N2 --time=7"),
    "failed": ("exit 3", "-n2 -c2 --mem-per-cpu=100M"),
    "batch": ("$EAT 400", "--mem=100M"),
    "tasks": ("srun --mpi=none -n4 $EAT 80", "-n4 --mem=200M"),
    "ranks": (
        "srun --mpi=none --kill-on-bad-exit=1 --label -n4 sh -c"
        " '[ $SLURM_PROCID = 2 ] || exec sleep 60; echo own words >&2; exit 3'",
        "-n4 -N4",
    ),
    "cancelled": ("srun --mpi=none sleep 60", ""),
    "queued": ("true", "--begin=now+1hour"),
}


@pytest.fixture(autouse=True)
def _here(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process a user of the cluster."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))


@pytest.fixture(scope="module")
def ids(cluster: Cluster) -> dict[str, int]:
    """Jobs that end in each of these ways, side by side."""
    eat = cluster.folder / "eat.py"
    eat.write_text(EAT)
    ids = {}
    for name, (script, words) in SCRIPTS.items():
        wrap = script.replace("$EAT", f"{sys.executable} {eat}")
        out = f"--output={cluster.folder}/job-%j.out"
        job = cluster.run("sbatch", "--parsable", out, *words.split(), f"--wrap={wrap}")
        ids[name] = int(job)
    state = ("squeue", "-hj", str(ids["cancelled"]), "-s", "-o", "%i")
    step = rf"(.*\n)*{ids['cancelled']}\.0(\n.*)*"
    assert wait_until(lambda: cluster.says(step, *state), 20)
    cluster.run("scancel", str(ids["cancelled"]), str(ids["queued"]))
    return ids


@pytest.fixture
def jobs(ids: dict[str, int]) -> dict[str, Job]:
    """Those jobs once the accounting has all of them."""
    found: dict[int, Job] = {}

    def over() -> bool:
        found.update(query(list(ids.values())))
        return len(found) == len(ids) and all(map(settled, found.values()))

    assert wait_until(over, 30), found
    return {name: found[number] for name, number in ids.items()}


def test_jobs_are_read_right(jobs: dict[str, Job]) -> None:
    good = jobs["completed"]
    assert (good.state, good.exit_code, good.limit_s, good.nodes) == ("COMPLETED", 0, 420, 2)
    assert good.node_list == "node[1-2]" and good.partition == "main"
    assert good.elapsed_s >= 2 and cause_of(good) is None
    assert good.started and good.submitted
    assert good.submitted <= good.started < (good.ended or "") and good.ended.endswith("+00:00")
    bad = jobs["failed"]
    assert (bad.state, bad.exit_code, bad.cpus) == ("FAILED", 3, 4) and cause_of(bad) is None
    assert bad.asked_mem_bytes == 400 * MIB


def test_too_much_memory(jobs: dict[str, Job]) -> None:
    batch, tasks = jobs["batch"], jobs["tasks"]
    assert (batch.state, batch.signal, batch.asked_mem_bytes) == ("FAILED", 9, 100 * MIB)
    # Slurm looks once and kills: while the program still takes its memory, or later.
    assert batch.max_rss_bytes and batch.max_rss_bytes > batch.asked_mem_bytes
    # None of them is above what was asked for by itself.
    assert tasks.asked_mem_bytes == 200 * MIB
    assert tasks.max_rss_bytes and tasks.max_rss_bytes < 150 * MIB
    for job in (batch, tasks):
        cause = cause_of(job)
        assert cause is not None and cause[0] == "OUT_OF_MEMORY", job


def test_srun_says_which_rank_was_first(
    cluster: Cluster, ids: dict[str, int], jobs: object
) -> None:
    def said(name: str) -> Said:
        log = cluster.folder / f"job-{ids[name]}.out"
        return Said.read(log, labelled=name == "ranks")

    # srun itself exits with 143, of the ranks that it has ended.
    ranks = said("ranks")
    assert (ranks.ends[0][2:], ranks.own[-1]) == ((3, None), "own words")
    assert not ranks.memory and not ranks.launch
    assert "memory limit" in said("tasks").memory


def test_cancelled(jobs: dict[str, Job]) -> None:
    by = f"was cancelled by user {os.geteuid()}"
    for job in (jobs["cancelled"], jobs["queued"]):
        assert cause_of(job) == ("CANCELLED", f"job {job.job_id} {by}")
    assert jobs["cancelled"].started and jobs["queued"].started is None


def test_jobs_by_number_and_by_name(ids: dict[str, int], jobs: dict[str, Job]) -> None:
    assert set(query([ids["failed"], 999_999])) == {ids["failed"]}
    by_name = named("wrap", (jobs["completed"].submitted or "").removesuffix("+00:00"))
    # Not one that never was to begin in that time.
    assert {job.job_id: job for name, job in jobs.items() if name != "queued"} == {
        number: by_name[number] for name, number in ids.items() if name != "queued"
    }


def test_accounting_that_is_off_is_one_line(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = cluster.config.read_text().splitlines()
    off = cluster.config.with_name("off.conf")
    off.write_text("\n".join(line for line in lines if not line.startswith("Accounting")) + "\n")
    monkeypatch.setenv("SLURM_CONF", str(off))
    with pytest.raises(UserError, match=r"^sacct: .*disabled"):
        query([1])
