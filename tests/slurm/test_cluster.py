"""The test cluster is a real Slurm: it boots, runs, accounts for every way to end, and goes."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, ClusterError, start_time, wait_until
from tests.slurm.jobs import PMIX, needs_slurm, run_out, submit, tasks

pytestmark = needs_slurm

CLUSTER = Path(__file__).with_name("cluster.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: sockets go into it."""
    path = Path(tempfile.mkdtemp(prefix="slurm-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def expect(cluster: Cluster, job: str, seconds: float = 30, /, **wanted: str) -> None:
    """Wait until sacct says this (patterns of state and exit code) of a job and of its steps.

    For some seconds after the end of a job it may say something else of a step.
    """
    rows: dict[str, str] = {}

    def said() -> bool:
        lines = cluster.run("sacct", "-nPj", job, "--format=jobid,state,exitcode").splitlines()
        for step, state, code in (line.split("|") for line in lines):
            rows[step.replace(job, "job").replace("job.", "step_")] = f"{state} {code}"
        return rows.keys() == wanted.keys() and all(
            re.fullmatch(wanted[step], found) for step, found in rows.items()
        )

    assert wait_until(said, seconds), rows


@pytest.fixture(scope="module")
def timed_out(cluster: Cluster) -> str:
    """A job beyond its limit, started early: slurmctld looks every 30 s."""
    job = submit(cluster, "sleep 600", "--time=1")
    assert wait_until(lambda: cluster.says("RUNNING", "squeue", "-hj", job, "-o%T"), 30)
    run_out(cluster, job)
    return job


@pytest.fixture(scope="module", autouse=True)
def _early(timed_out: str) -> None:
    """Have that time pass while the other tests run."""


def test_nodes_are_idle_and_have_features(cluster: Cluster) -> None:
    # node1 already runs the job that is to exceed its limit.
    rows = dict(
        line.split("|")
        for line in cluster.run("sinfo", "-hNp", "main", "-o", "%N|%c %f").splitlines()
    )
    assert rows == {f"node{n}": f"256 {'cache' if n < 3 else 'flat'}" for n in range(1, 5)}
    assert set(cluster.run("sinfo", "-hNp", "main", "-o", "%T").split()) <= {"idle", "mixed"}
    assert "main*" in cluster.run("sinfo", "-ho", "%P")
    assert cluster.run("sinfo", "-hp", "short", "-o", "%l").strip() == "5:00"


def test_accounting_knows_cluster_account_user_and_qos(cluster: Cluster) -> None:
    found = cluster.run("sacctmgr", "-nP", "show", "assoc", "format=cluster,account,user,qos")
    assert f"test|test|{cluster.user}|normal,urgent" in found.splitlines()


def test_constraint_and_qos_are_honoured(cluster: Cluster) -> None:
    node = ("srun", "--mpi=none", "--qos=urgent", "sh", "-c", "echo $SLURMD_NODENAME")
    assert cluster.run(*node[:1], "--constraint=flat", *node[1:]).strip() in ("node3", "node4")
    with pytest.raises(ClusterError, match="feature"):
        submit(cluster, "true", "--constraint=none_such")
    with pytest.raises(ClusterError, match="partition"):
        submit(cluster, "true", "--partition=none_such")


def test_every_task_has_its_own_node(cluster: Cluster) -> None:
    words = ("srun", "-N4", "-n4", "--mpi=none", "sh", "-c", "echo $SLURMD_NODENAME $SLURM_NODEID")
    assert sorted(cluster.run(*words).splitlines()) == [f"node{n + 1} {n}" for n in range(4)]


@pytest.mark.skipif(
    not PMIX, reason="srun --mpi=pmix opens libpmix.so: apt-get install libpmix-dev"
)
def test_pmix_gives_every_task_its_rank(cluster: Cluster) -> None:
    words = ("srun", "-N4", "-n8", "--mpi=pmix", "sh", "-c", "echo $PMIX_RANK $SLURMD_NODENAME")
    ranks = [line.split() for line in cluster.run(*words).splitlines()]
    assert sorted(int(rank) for rank, _ in ranks) == list(range(8))
    assert {node for _, node in ranks} == set(cluster.nodes)


def test_1024_tasks_are_accepted_and_1025_are_not(cluster: Cluster) -> None:
    cluster.run("sbatch", "--test-only", "-N4", "-n1024", "--wrap=true")
    with pytest.raises(ClusterError, match="not available"):
        cluster.run("sbatch", "--test-only", "-N4", "-n1025", "--wrap=true")


def test_completed_and_failed(cluster: Cluster) -> None:
    good, bad = submit(cluster, "true", "--comment=a run"), submit(cluster, "exit 3")
    expect(cluster, good, job="COMPLETED 0:0", step_batch="COMPLETED 0:0")
    expect(cluster, bad, job="FAILED 3:0", step_batch="FAILED 3:0")
    # For a moment after its end sacct may say QoS "Unknown".
    row = ("sacct", "-nXPj", good, "--format=account,qos,comment")
    assert wait_until(lambda: cluster.run(*row) == "test|normal|a run\n", 10)


def test_too_much_memory_is_killed_and_seen(cluster: Cluster) -> None:
    eat = f"{sys.executable} -c 'import time; x = b\"x\" * 400_000_000; time.sleep(60)'"
    by_batch = submit(cluster, eat, "--mem=100M")
    by_step = submit(cluster, f"srun --mpi=none {eat}", "--mem=100M")
    # Without cgroups nobody says OUT_OF_MEMORY: the step's MaxRSS above the request does.
    killed = f"CANCELLED by {os.geteuid()} 0:9"
    expect(cluster, by_batch, job="FAILED 0:9", step_batch=killed)
    expect(cluster, by_step, job="FAILED 9:0", step_batch="FAILED 9:0", step_0=killed)
    for step in (f"{by_batch}.batch", f"{by_step}.0"):
        used = cluster.run("sacct", "-nPj", step, "--format=maxrss", "--units=M").strip()
        # Slurm looks once and kills: while the program still takes its memory, or later.
        assert float(used.removesuffix("M")) > 100
    log = (cluster.folder / f"job-{by_step}.out").read_text()
    assert "exceeded memory limit" in log


def test_dead_node_fails_its_jobs_and_comes_back(cluster: Cluster) -> None:
    script = "sleep 601 & srun --mpi=none -N2 -n2 --overlap sleep 602"
    two = submit(cluster, script, "--no-requeue", "-N2", "--nodelist=node3,node4")
    one = submit(cluster, "sleep 603", "--no-requeue", "--nodelist=node4")
    again = submit(cluster, "sleep 604", "--requeue", "--nodelist=node4")

    def placed() -> list[list[str]]:
        return [tasks(cluster, argument) for argument in ("601", "602", "603", "604")]

    assert wait_until(
        lambda: placed() == [["node3"], ["node3", "node4"], ["node4"], ["node4"]], 20
    ), placed()
    with cluster.without_node("node4"):
        assert placed() == [["node3"], ["node3"], [], []]
        cut = "CANCELLED 0:15"
        expect(cluster, two, 60, job="NODE_FAIL 0:0", step_batch=cut, step_0=cut)
        # Nobody is left to report the exit code of a batch step that went with its node.
        expect(cluster, one, 60, job="NODE_FAIL 0:0", step_batch="CANCELLED ")
        # Requeued, to begin two minutes later; sacct shows the first try only with --duplicates.
        assert cluster.run("squeue", "-hj", again, "-o", "%T %r") == "PENDING BeginTime\n"
        tries = cluster.run("sacct", "-nXPDj", again, "--format=state").splitlines()
        assert tries[0] == "NODE_FAIL"
        assert cluster.run("sinfo", "-hn", "node4", "-p", "main", "-o", "%T").strip() == "down*"
        cluster.run("scancel", again)
    words = ("srun", "--mpi=none", "--nodelist=node4", "echo", "back")
    assert cluster.run(*words) == "back\n"


def test_time_limit(cluster: Cluster, timed_out: str) -> None:
    # The step is cancelled, or its shell ends first, for what it has waited for was ended.
    by_batch = "CANCELLED 0:15|FAILED 15:0"
    expect(cluster, timed_out, 120, job="TIMEOUT 0:0", step_batch=by_batch)


def processes_of(folder: Path) -> list[str]:
    """Command lines of the processes that have this folder in command line or environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
            named = str(folder).encode() in words + (path / "environ").read_bytes()
        except OSError:
            continue
        if named and start_time(int(path.name)):
            found.append(words.decode(errors="replace").replace("\0", " "))
    return found


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """Call the command line from outside the folder."""
    return subprocess.run(
        [sys.executable, str(CLUSTER), *words], capture_output=True, text=True, check=False
    )


def test_command_line_beside_another_cluster(cluster: Cluster, folder: Path) -> None:
    up = command("up", "--folder", str(folder), "--nodes=1", "--cpus=2", "--memory-mb=2000")
    assert (up.returncode, up.stderr) == (0, ""), up.stderr
    assert up.stdout == command("env", "--folder", str(folder)).stdout
    assert up.stdout == f"export SLURM_CONF={folder}/etc/slurm.conf\n"
    assert "not empty" in command("up", "--folder", str(folder)).stderr
    other = Cluster(folder)
    submit(other, "nohup sleep 611 & sleep 612", "--export=NONE")
    assert wait_until(lambda: [tasks(other, n) for n in ("611", "612")] == [["node1"]] * 2, 20)
    # A process that has by now the pid of one that ended must not be touched.
    decoy = subprocess.Popen(["sleep", "613"])
    with other.notes.open("a") as notes:
        notes.write(f"{decoy.pid} 1 node1\n")
    try:
        down = command("down", "--folder", str(folder))
        assert (down.returncode, down.stdout, down.stderr) == (0, "", "")
        assert decoy.poll() is None
    finally:
        decoy.kill()
        decoy.wait()
    assert processes_of(folder) == []
    assert not folder.exists()
    assert "no cluster" in command("down", "--folder", str(folder)).stderr
    assert cluster.run("sinfo", "-h")


@pytest.mark.parametrize("last", ["mariadb-install-db", "slurmctld"])
def test_down_after_the_starter_was_killed(folder: Path, last: str) -> None:
    starter = subprocess.Popen([sys.executable, str(CLUSTER), "up", "--folder", str(folder)])
    notes = folder / "processes.txt"
    assert wait_until(lambda: notes.exists() and last in notes.read_text(), 30)
    starter.kill()
    starter.wait()
    assert processes_of(folder)
    assert command("down", "--folder", str(folder)).returncode == 0
    assert processes_of(folder) == []
    assert not folder.exists()


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("tests.slurm.cluster.PATH", "/nowhere")
    with pytest.raises(ClusterError) as error:
        Cluster(folder).up()
    assert str(error.value) == (
        "missing munged, mariadbd, slurmdbd, slurmctld, slurmd, sacctmgr: apt-get install"
        " mariadb-server munge slurm-client slurmctld slurmd slurmdbd"
    )


def test_a_folder_in_use_or_too_long_is_refused(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(ClusterError, match="not empty"):
        Cluster(folder).up()
    with pytest.raises(ClusterError, match="60 letters"):
        Cluster(folder / ("x" * 60)).up()
    assert (folder / "file").exists()
