"""The test cluster boots beside another one, goes without a trace, and says what it lacks."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, ClusterError, start_time, wait_until
from tests.slurm.jobs import needs_slurm, submit, tasks

pytestmark = needs_slurm

CLUSTER = Path(__file__).with_name("cluster.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: sockets go into it."""
    path = Path(tempfile.mkdtemp(prefix="slurm-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


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
