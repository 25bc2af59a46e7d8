"""A real Grid Engine of one node on this machine, in a folder of its own (Debian's packages)."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.slurm.cluster import free_ports, signal_and_wait, wait_until

_SHARE, _LIBRARY = Path("/usr/share/gridengine"), Path("/usr/lib/gridengine")
PACKAGES = "gridengine-master gridengine-exec gridengine-client"
_PARALLEL = {
    "pe_name": "mpi", "slots": "999", "user_lists": "NONE", "xuser_lists": "NONE",
    "start_proc_args": "NONE", "stop_proc_args": "NONE", "allocation_rule": "$fill_up",
    "control_slaves": "TRUE", "job_is_first_task": "FALSE", "urgency_slots": "min",
    "accounting_summary": "TRUE", "qsort_args": "NONE",
}  # fmt: skip
_QUEUE = {
    "qname": "all.q",
    "hostlist": "localhost",
    "slots": "8",
    "pe_list": "mpi",
    "load_thresholds": "NONE",
}
_QUICK = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}


def lacks() -> str:
    """What is to be installed; empty if nothing is."""
    there = all((_LIBRARY / name).exists() for name in ("sge_qmaster", "sge_execd", "qsub"))
    return "" if there else f"no Grid Engine: apt-get install {PACKAGES}"


def _settings(given: str, own: Mapping[str, str]) -> str:
    """Settings, a line each, with one's own in place of those of the same name."""
    lines = [line.split(None, 1) for line in given.splitlines() if line.strip(" #")]
    return "".join(f"{key} {own.get(key, value)}\n" for key, value in lines if key != "#")


@contextlib.contextmanager
def grid_engine(folder: Path) -> Iterator[dict[str, str]]:
    """A master and a node with 8 slots, until the end; the variables that its commands need.
    ``folder`` is there and empty."""
    master, node = map(str, free_ports(2))
    own = {"SGE_ROOT": str(folder), "SGE_CELL": "cell"}
    own |= {"SGE_QMASTER_PORT": master, "SGE_EXECD_PORT": node}

    def run(*words: str | Path) -> str:
        return subprocess.run(
            words, env={**os.environ, **own}, text=True, capture_output=True, check=True, timeout=30
        ).stdout

    def answers() -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            return bool(run("qconf", "-sh"))
        return False

    def edited(name: str, given: str, **values: str) -> Path:
        (folder / name).write_text(_settings(given, values))
        return folder / name

    spool, common = folder / "spool", folder / "cell" / "common"
    for part in (common, spool / "master" / "job_scripts", spool / "nodes", spool / "db"):
        part.mkdir(parents=True)
    for name in ("bin", "lib", "util", "utilbin"):
        (folder / name).symlink_to(Path("/var/lib/gridengine", name))
    places = {"spooling_params": str(spool / "db"), "qmaster_spool_dir": str(spool / "master")}
    given = (_SHARE / "default-bootstrap").read_text()
    edited("cell/common/bootstrap", given, admin_user="none", **places)
    (common / "host_aliases").write_text(f"localhost {os.uname().nodename}\n")
    given = (_SHARE / "default-configuration").read_text()
    nodes = str(spool / "nodes")
    settings = edited("configuration", given, execd_spool_dir=nodes, min_uid="0", min_gid="0")
    run(_LIBRARY / "spoolinit", "berkeleydb", "libspoolb", spool / "db", "init")
    shipped = _SHARE / "util" / "resources"
    run(_LIBRARY / "spooldefaults", "configuration", settings)
    run(_LIBRARY / "spooldefaults", "complexes", shipped / "centry")
    run(_LIBRARY / "spooldefaults", "usersets", shipped / "usersets")
    run(_LIBRARY / "spooldefaults", "managers", "root")
    try:
        run("/usr/sbin/sge_qmaster")
        assert wait_until(answers, 20), "the master of Grid Engine does not answer"
        pe = "".join(f"{key} {value}\n" for key, value in _PARALLEL.items())
        run("qconf", "-Ap", edited("pe", pe))
        run("qconf", "-as", "localhost")
        run("qconf", "-Msconf", edited("scheduler", run("qconf", "-ssconf"), **_QUICK))
        run("/usr/sbin/sge_execd")
        run("qconf", "-Aq", edited("queue", run("qconf", "-sq"), **_QUEUE))
        yield own
    finally:
        for file in [*spool.glob("**/execd.pid"), *spool.glob("**/qmaster.pid")]:
            signal_and_wait(int(file.read_text()), signal.SIGKILL)
