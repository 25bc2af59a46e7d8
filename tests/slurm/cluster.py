#!/usr/bin/env python3
"""A real Slurm on one machine: munged, mariadbd, slurmdbd, slurmctld and some slurmd.

    python tests/slurm/cluster.py up --folder DIR
    python tests/slurm/cluster.py down --folder DIR

or, in a test, ``with Cluster(folder) as cluster: cluster.run("sinfo")``. Keys, sockets, database
and logs are in that folder, the ports are free ones: several clusters can be up at once. ``down``
ends the processes that ``up`` started (processes.txt has each pid with its start time, for by now
the pid may be another process's) and their jobs, also after ``up`` was killed. Then it removes the
folder. A user needs to export SLURM_CONF only.

Partition ``main``, account ``test``, QoS ``normal``. The first half of the nodes has the feature
``cache``, the rest ``flat``.
"""

import argparse
import contextlib
import os
import pwd
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self

# Program, or plugin of Slurm -> the Debian package that has it.
PACKAGES = {
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "slurmdbd": "slurmdbd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sacctmgr": "slurm-client",
    "accounting_storage_slurmdbd.so": "slurm-wlm-basic-plugins",
    "accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
}
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CPUS, MEMORY_MB = 256, 262144  # of each node, more than the machine has

SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}({address})
SlurmctldPort={ctld_port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge/socket
CommunicationParameters={communication}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
# Without a folder per node --mpi=pmix fails across two slurmd of one host.
TmpFS={folder}/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/%n.pid
# No cgroups, and more CPUs than the machine has.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU={memory_per_cpu}
# Quick, though a time limit is a whole minute and slurmctld looks at it every 30 s.
SchedulerParameters=sched_interval=2,sched_min_interval=50000,batch_sched_delay=0,bf_interval=2
SlurmdTimeout=10
KillWait=2
OverTimeLimit=0
ReturnToService=2
# A step above its memory is killed; the memory is looked at every second.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge/socket
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
PartitionName=main Default=YES Nodes=ALL DefaultTime=60 MaxTime=INFINITE
"""

SLURMDBD_CONF = """\
AuthInfo=socket={folder}/munge/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser={user}
PidFile={folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm
CommunicationParameters={communication}
"""


class ClusterError(Exception):
    """The cluster cannot be had; one line says why."""


def missing_packages() -> str | None:
    """One line naming what is not installed and the Debian packages that have it."""
    plugins = {path.name for path in Path("/usr/lib").glob("*/slurm*/*.so")}
    here = {name for name in PACKAGES if name in plugins or shutil.which(name, path=PATH)}
    lost = {name: package for name, package in PACKAGES.items() if name not in here}
    packages = " ".join(sorted(set(lost.values())))
    return f"missing {', '.join(lost)}: apt-get install {packages}" if lost else None


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens, below those that Linux gives to outgoing connections."""
    ports: list[int] = []
    for port in random.SystemRandom().sample(range(15000, 32000), 1000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))
            ports.append(port)
    return ports[:count]


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it is gone or a zombie."""
    try:
        # After its name, which is in parentheses and may itself hold some.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def signal_and_wait(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone by now; give it 10 s to end."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    wait_until(lambda: not start_time(pid), 10)


def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Ask until the answer is yes; False if it was no for so long."""
    last = time.monotonic() + seconds
    while not done():
        if time.monotonic() > last:
            return False
        time.sleep(0.05)
    return True


class Cluster:
    """One cluster in one folder, which must be new or empty: it is removed at the end."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self.config = self.folder / "etc" / "slurm.conf"
        self.notes = self.folder / "processes.txt"
        self.nodes = [f"node{number}" for number in range(1, 5)]
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with this cluster in it, and nothing of a job around it."""
        job = ("SLURM", "SBATCH_", "SRUN_", "SALLOC_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(job)}
        return {**kept, "SLURM_CONF": str(self.config), "PATH": PATH}

    def run(self, *words: str, timeout: float = 60) -> str:
        """Run one of Slurm's commands here and return what it prints."""
        try:
            done = subprocess.run(
                words, env=self.environment, capture_output=True, timeout=timeout, check=True
            )
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
            raise ClusterError(f"{' '.join(words)}: {said or error}") from None
        return done.stdout.decode(errors="replace")

    def says(self, wanted: str, *words: str) -> bool:
        """Whether this command works and prints just what matches this pattern."""
        with contextlib.suppress(ClusterError):
            return bool(re.fullmatch(wanted, self.run(*words).strip()))
        return False

    def up(self) -> None:
        """Boot, and return when every node is idle and the accounting answers."""
        if missing := missing_packages():
            raise ClusterError(missing)
        # slurm.conf takes no blanks, and the path of a Unix socket has at most 107 bytes.
        if not re.fullmatch(r"[\w/.+-]{1,60}", str(self.folder), re.ASCII):
            raise ClusterError(f"{self.folder}: not up to 60 letters, digits, and any of /.+-_")
        if self.folder.exists() and any(self.folder.iterdir()):
            raise ClusterError(f"{self.folder} is not empty")
        try:
            self._boot(database_port=self._configure())
        except BaseException:
            self.down()
            raise

    def _configure(self) -> int:
        """Write every file; return the port of the database."""
        for name in ("etc", "munge", "state", "run", "log", *(f"{n}/spool" for n in self.nodes)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.notes.touch()
        slurmctld, slurmdbd, database, *ports = free_ports(3 + len(self.nodes))
        host, address = socket.gethostname().split(".")[0], ""
        with contextlib.suppress(OSError):
            address = socket.gethostbyname(host)
        # Where the machine's own name is a loopback address, nothing listens on another one.
        loopback = address.startswith("127.")
        values = {
            "folder": self.folder, "user": self.user, "password": secrets.token_hex(16),
            "host": host, "address": address if loopback else "127.0.0.1",
            "communication": "NoCtldInAddrAny,NoInAddrAny" if loopback else "",
            "ctld_port": slurmctld, "dbd_port": slurmdbd, "database_port": database,
            "memory_per_cpu": MEMORY_MB // CPUS,
        }  # fmt: skip
        slurm = SLURM_CONF.format(**values)
        for index, (node, port) in enumerate(zip(self.nodes, ports, strict=True)):
            slurm += (
                f"NodeName={node} NodeHostname={host} NodeAddr={values['address']} Port={port}"
                f" CPUs={CPUS} RealMemory={MEMORY_MB}"
                f" Feature={'cache' if 2 * index < len(ports) else 'flat'}\n"
            )
        # Each statement ends with its line.
        grants = (
            "CREATE DATABASE slurm;\n"
            f"GRANT ALL ON slurm.* TO slurm@127.0.0.1 IDENTIFIED BY '{values['password']}';\n"
        )
        for name, content, mode in (
            ("munge/key", secrets.token_bytes(128), 0o600),
            ("etc/slurm.conf", slurm.encode(), 0o644),
            ("etc/slurmdbd.conf", SLURMDBD_CONF.format(**values).encode(), 0o600),
            ("etc/grants.sql", grants.encode(), 0o600),
        ):
            (self.folder / name).touch(mode)
            (self.folder / name).write_bytes(content)
        return database

    def _boot(self, database_port: int) -> None:
        folder = self.folder
        # --force: munged may be root, and the folders above this one closed to other users.
        self._start(
            "munged", "--foreground", "--force", f"--key-file={folder}/munge/key",
            f"--socket={folder}/munge/socket", f"--pid-file={folder}/munge/pid",
            f"--seed-file={folder}/munge/seed", f"--log-file={folder}/log/munge.log",
        )  # fmt: skip
        # Not in /tmp: a server that starts removes the temporary tables of all that it finds there.
        common = (
            f"--datadir={folder}/database", f"--tmpdir={folder}/run", f"--user={self.user}",
            "--skip-name-resolve",
        )  # fmt: skip
        install = ("mariadb-install-db", "--no-defaults", *common)
        if self._start(*install).wait():
            raise self._failure("mariadb-install-db")
        self._start(
            "mariadbd", "--no-defaults", *common, "--bind-address=127.0.0.1",
            f"--port={database_port}", f"--socket={folder}/run/mariadb.sock", "--skip-log-bin",
            f"--pid-file={folder}/run/mariadb.pid", f"--init-file={folder}/etc/grants.sql",
            "--innodb-lock-wait-timeout=900", "--innodb-flush-log-at-trx-commit=0",
        )  # fmt: skip
        # Its socket is there once the init file has run.
        self._wait("mariadbd", (folder / "run" / "mariadb.sock").exists)
        self._start("slurmdbd", "-D")
        port_of_slurmctld = ("sacctmgr", "-nP", "show", "cluster", "format=controlport")
        self._wait("slurmdbd", partial(self.says, "", *port_of_slurmctld))
        for words in (
            "add cluster test",
            "add account test Description=test Organization=test",
            f"add user {self.user} Account=test QOS=normal",
            # Slurm made root's a user of an account of that name.
            f"modify user {self.user} set DefaultAccount=test DefaultQOS=normal",
        ):
            self.run("sacctmgr", "--immediate", *words.split())
        self._start("slurmctld", "-D", "-i")
        self.start_nodes(*self.nodes)
        self._wait("slurmctld", partial(self.says, "[1-9][0-9]*", *port_of_slurmctld))

    def start_nodes(self, *nodes: str, wait: bool = True) -> None:
        """Start the slurmd of these nodes, and wait until the nodes are up."""
        for node in nodes:
            self._start("slurmd", "-D", "-N", node, name=node)
        for node in nodes if wait else ():
            state = ("sinfo", "-ho%T", "-n", node, "-p", "main")
            self._wait(node, partial(self.says, "idle|mixed|allocated", *state))

    def kill_node(self, node: str) -> None:
        """End slurmd, steps and tasks of a node at once, as if its power were cut."""
        self._kill(node)
        if node in self._children:
            self._children[node].wait()

    @contextlib.contextmanager
    def without_node(self, node: str) -> Iterator[None]:
        """Kill a node, and start it again after the block, however that ends."""
        self.kill_node(node)
        try:
            yield
        finally:
            self.start_nodes(node)

    def _start(self, program: str, *words: str, name: str = "") -> "subprocess.Popen[bytes]":
        """Start a daemon in the foreground of a session of its own, and note its pid."""
        name = name or program
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            process = subprocess.Popen(
                [program, *words], cwd=self.folder, start_new_session=True,
                # By these two variables _kill knows whatever comes of this process.
                env={**self.environment, "SLURMD_NODENAME": name},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        with self.notes.open("a") as notes:
            notes.write(f"{process.pid} {start_time(process.pid)} {name}\n")
        self._children[name] = process
        return process

    def _wait(self, name: str, up: Callable[[], bool]) -> None:
        """Wait for what shows that a daemon is up."""
        child = self._children[name]
        if not wait_until(lambda: child.poll() is not None or up(), 60) or child.poll() is not None:
            raise self._failure(name)

    def _failure(self, name: str) -> ClusterError:
        lines = (self.folder / "log" / f"{name}.out").read_text(errors="replace").splitlines()
        return ClusterError("\n".join([f"{name} did not come up; its log ends so:", *lines[-15:]]))

    def down(self) -> None:
        """End every job and process of this cluster and remove its folder."""
        notes = [line.split() for line in self.notes.read_text().splitlines()]
        alive = {name: int(pid) for pid, start, name in notes if str(start_time(int(pid))) == start}
        if "slurmctld" in alive:
            try:
                if jobs := self.run("squeue", "--noheader", "--format=%A", timeout=10).split():
                    self.run("scancel", "--quiet", *jobs, timeout=10)
                wait_until(lambda: not self.run("squeue", "--noheader", timeout=10), 10)
            except ClusterError as error:
                print(f"warning: {error}", file=sys.stderr)
        for pid in reversed(alive.values()):
            signal_and_wait(pid, signal.SIGTERM)
        # What did not listen, outlived its job, or was started by an ``up`` killed before its note.
        self._kill()
        for child in self._children.values():
            child.wait()
        shutil.rmtree(self.folder)

    def _kill(self, node: str = "") -> None:
        """Kill every process of a node, or of the whole cluster, until none is left."""
        # Daemons have both variables from _start, slurmstepd from slurmd, tasks from slurmstepd.
        mine, name = f"SLURM_CONF={self.config}".encode(), f"SLURMD_NODENAME={node}".encode()
        while True:
            found = []
            for path in Path("/proc").glob("[0-9]*/environ"):
                with contextlib.suppress(OSError):
                    variables, pid = path.read_bytes().split(b"\0"), int(path.parent.name)
                    there = any(v == name if node else v.startswith(name) for v in variables)
                    if there and mine in variables and start_time(pid):
                        found.append(pid)
            if not found:
                return
            for pid in found:
                signal_and_wait(pid, signal.SIGKILL)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="A real Slurm on this machine.")
    parser.add_argument("command", choices=("up", "down"))
    parser.add_argument("--folder", type=Path, required=True, help="new or empty for `up`")
    given = parser.parse_args()
    cluster = Cluster(given.folder)
    try:
        if given.command == "up":
            cluster.up()
            print(f"export SLURM_CONF={cluster.config}")
        elif cluster.notes.exists():
            cluster.down()
        else:
            raise ClusterError(f"no cluster in {cluster.folder}")
    except ClusterError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
