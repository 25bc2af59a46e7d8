"""Random trouble for a campaign of 30 runs on a real Slurm: `make soak SLURM=1`.

While Snakemake runs, from either of two clones, killed, called off and started again, a seed draws
what happens next: processes of Snakemake, of jobs, of a whole node and of Slurm's daemons end at
once, jobs are cancelled or held, records are cut or deleted, the disk is full for a while. Points
are measured until they are precise, and with an odd seed runs share allocations. Counted is what
must never be: a run that is lost, a record that is not whole or was written again, an attempt
without a reason, two jobs of a run at the same time, a job that the end of a call has cancelled, a
file of the user's that was touched, a call of Snakemake that does not end.
"""

import argparse
import contextlib
import hashlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from scalesweep.compute.pack import read_pack
from scalesweep.core.errors import UserError
from scalesweep.core.record import checksums, read_record, verify_files
from scalesweep.slurm.job_identity import pack_of
from tests.slurm.cluster import Cluster, ClusterError, wait_until
from tests.slurm.support import SlurmProject, slurm_project

CAMPAIGN = """\
campaign: soak
site: toy_cluster
experiments:
  e:
    benchmark: toy
    axes: {size: {from: 1, to: 10, step: 1}}
    fixed: {ranks: 1, ranks_per_node: 1, behaviour: slow}
    time_limit_minutes: 1
    expected_minutes: 0.3
    repeats: {min: 3, max: 6, until: 20 %}
"""
SLURM = "{startup_minutes: 0.5, max_attempts: 5}"
PACKED = "{startup_minutes: 0.5, max_attempts: 5, pack: {minutes: 4}}"
# Files of the user's in the results folder, below it and in the folder of runs.
BYSTANDERS = ("notes.txt", "mine/paper.pdf", "runs/toy_cluster/readme.txt")
RUNS, TROUBLES = 30, 50
# A call of Snakemake that is left alone ends within this time: 30 runs of 15 s, four at once.
CALL_S = 420.0
CALLS = 8
DISK_MB = 96


class Soak:
    """The campaign, its cluster, and what has happened to it."""

    def __init__(self, project: SlurmProject, clone: SlurmProject, seed: int) -> None:
        self.project, self.cluster = project, project.cluster
        self.clone = clone
        self.runs = project.path / "results" / "runs" / "toy_cluster"
        self.draw = random.Random(seed)
        self.snakemake: subprocess.Popen[str] | None = None
        self.troubles: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        # Run -> digest of its record; how often something happened that could end its attempt.
        self.seen: dict[str, str] = {}
        self.hits: Counter[str] = Counter()
        self.live: dict[str, tuple[str, str]] = {}
        self.cancelled: set[str] = set()

    def start(self) -> None:
        """Start Snakemake, if none is at work."""
        if self.snakemake is None or self.snakemake.poll() is not None:
            caller = self.draw.choice([self.project, self.clone])
            shared = ("--config", f"results={self.project.path / 'results'}")
            self.snakemake = caller.start("--configfile", "c.yaml", "--jobs", "4", *shared)

    def stand_by(self) -> None:
        """Leave files of the user's, once the results folder is the campaign's."""
        for name in BYSTANDERS:
            path = self.runs.parents[1] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} is mine\n")

    def runs_of(self, note: str) -> list[str]:
        """The runs that a job is of, by its comment."""
        name = pack_of(note)
        pack = read_pack(self.runs, name) if name else None
        return [run["run_id"] for run in pack["runs"]] if pack else [note.rpartition("_")[2]]

    def end_call(self, end: Callable[[], bool]) -> bool:
        """End a call of Snakemake; its jobs must stay as they are."""
        before = sorted(self.queue())
        if not end():
            return False
        if before:
            words = ("sacct", "-nXPa", "--state=CANCELLED", f"-j{','.join(before)}", "-ojobid")
            with contextlib.suppress(ClusterError):
                if gone := set(self.cluster.run(*words).split()) - self.cancelled:
                    self.violation("cancelled by the end of a call", ", ".join(sorted(gone)))
        return True

    def queue(self) -> dict[str, tuple[str, str]]:
        """Jobs: id -> state and run; the last that is known while slurmctld is away."""
        with contextlib.suppress(ClusterError):
            lines = self.cluster.run("squeue", "-ho%A|%T|%k", timeout=20).splitlines()
            jobs = [line.split("|") for line in lines]
            self.live = {job: (state, note) for job, state, note in jobs}
        return self.live

    def hit(self, *states: str) -> None:
        """Note that what happens now may end the attempts of jobs in these states."""
        for state, note in self.queue().values():
            if state in states:
                self.hits.update(self.runs_of(note))

    def violation(self, kind: str, what: str) -> None:
        """Count what must never be."""
        self.violations[kind] += 1
        print(f"VIOLATION {kind}: {what}", flush=True)

    # What may happen; each says whether it did.

    def kill_snakemake(self) -> bool:
        """kill -9; its jobs go on."""
        if self.snakemake is None or self.snakemake.poll() is not None:
            return False
        os.killpg(self.snakemake.pid, 9)
        self.snakemake.wait()
        return True

    def call_off(self) -> bool:
        """SIGTERM: the call ends within seconds, its jobs go on."""
        if self.snakemake is None or self.snakemake.poll() is not None:
            return False
        self.snakemake.terminate()
        try:
            self.snakemake.wait(30)
        except subprocess.TimeoutExpired:
            self.violation("waits without end", "SIGTERM was not heard")
            self.kill_snakemake()
        return True

    def kill_launcher(self) -> bool:
        """kill -9 of what looks after a run inside its job."""
        found: list[tuple[psutil.Process, list[str]]] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                words = process.cmdline()
                inside = Path(process.cwd()).is_relative_to(self.project.path)
                if not inside or len(words) < 2 or not words[1].endswith("launch.py"):
                    continue
                if "--order" in words:
                    name = Path(words[words.index("--order") + 1]).parent.name
                    found.append((process, [name]))
                elif "--pack" in words:
                    pack = read_pack(self.runs, Path(words[words.index("--pack") + 1]).stem)
                    found.append((process, [run["run_id"] for run in pack["runs"]] if pack else []))
        if not found:
            return False
        process, run_ids = self.draw.choice(found)
        self.hits.update(run_ids)
        with contextlib.suppress(psutil.Error):
            process.kill()
        return True

    def lose_node(self) -> bool:
        """A node with all its processes, back after a while."""
        self.hit("RUNNING", "COMPLETING", "CONFIGURING", "PENDING")
        node = self.draw.choice(self.cluster.nodes)
        self.cluster.kill_node(node)
        time.sleep(self.draw.uniform(0, 12))
        self.cluster.start_nodes(node, wait=False)
        return True

    def kill_slurmd(self) -> bool:
        """Slurm's daemon of a node; its jobs go on."""
        self.hit("RUNNING", "COMPLETING", "CONFIGURING", "PENDING")
        node = self.draw.choice(self.cluster.nodes)
        self.cluster.kill_daemon(node)
        time.sleep(self.draw.uniform(0, 3))
        self.cluster.start_nodes(node, wait=False)
        return True

    def kill_slurmctld(self) -> bool:
        """Slurm's controller, which may forget what it had not saved."""
        self.hit("RUNNING", "COMPLETING", "CONFIGURING", "PENDING")
        self.cluster.kill_daemon("slurmctld")
        time.sleep(self.draw.uniform(0, 8))
        self.cluster.start_controller()
        return True

    def cancel(self, state: str) -> bool:
        """Scancel of a job that is running or queued."""
        jobs = [job for job, (now, _) in self.queue().items() if now == state]
        if not jobs:
            return False
        job = self.draw.choice(jobs)
        self.hits.update(self.runs_of(self.live[job][1]))
        self.cancelled.add(job)
        with contextlib.suppress(ClusterError):
            self.cluster.run("scancel", job)
        return True

    def waiting(self) -> list[str]:
        """Jobs that wait in the queue."""
        return [job for job, (now, _) in self.queue().items() if now == "PENDING"]

    def hold(self) -> bool:
        """A job that waits is held for a while; for one to wait, no job begins meanwhile."""
        partition = ("scontrol", "update", "PartitionName=main")
        job = ""
        with contextlib.suppress(ClusterError):
            self.cluster.run(*partition, "State=DOWN")
            if wait_until(lambda: bool(self.waiting()), 20) and (jobs := self.waiting()):
                job = self.draw.choice(jobs)
                self.cluster.run("scontrol", "hold", job)
        with contextlib.suppress(ClusterError):
            self.cluster.run(*partition, "State=UP")
        if not job:
            return False
        time.sleep(self.draw.uniform(0, 8))
        with contextlib.suppress(ClusterError):  # cancelled meanwhile
            self.cluster.run("scontrol", "release", job)
        return True

    def damage(self, delete: bool) -> bool:
        """Cut a record, or delete it: the run is to be measured again."""
        records = sorted(self.runs.glob("*/record.json"))
        if not records:
            return False
        path = self.draw.choice(records)
        content = path.read_bytes()
        path.write_bytes(content[: self.draw.randrange(len(content))])
        if delete:
            path.unlink()
        self.seen.pop(path.parent.name, None)
        self.hits[path.parent.name] += 1
        return True

    def fill_disk(self) -> bool:
        """A disk that is full for a while."""
        for run_id in self.project_runs():
            self.hits[run_id] += 1
        filler = self.project.path / "results" / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        time.sleep(self.draw.uniform(1, 6))
        filler.unlink()
        return True

    def project_runs(self) -> set[str]:
        """Runs that are there and not done."""
        return {path.name for path in self.runs.glob("toy-*") if path.name not in self.seen}

    def happen(self) -> None:
        """Let something happen, drawn by the seed."""
        kinds: dict[str, Callable[[], bool]] = {
            "kill -9 of snakemake": partial(self.end_call, self.kill_snakemake),
            "SIGTERM of snakemake": partial(self.end_call, self.call_off),
            "job held": self.hold,
            "kill -9 of a launcher": self.kill_launcher,
            "node lost": self.lose_node,
            "kill -9 of slurmd": self.kill_slurmd,
            "kill -9 of slurmctld": self.kill_slurmctld,
            "scancel of a running job": partial(self.cancel, "RUNNING"),
            "scancel of a queued job": partial(self.cancel, "PENDING"),
            "record cut": partial(self.damage, delete=False),
            "record deleted": partial(self.damage, delete=True),
            "disk full": self.fill_disk,
        }
        # What has happened least often comes first, so that each has its turn.
        order = self.draw.sample(sorted(kinds), k=len(kinds))
        for kind in sorted(order, key=lambda name: self.troubles[name]):
            if kinds[kind]():
                self.troubles[kind] += 1
                print(f"{self.troubles.total():3} {kind}: {len(self.seen)} done", flush=True)
                return

    def check(self) -> None:
        """Look at every record: whole, and never written again; and at the user's own files."""
        for path in self.runs.glob("*/record.json"):
            run_id = path.parent.name
            with contextlib.suppress(FileNotFoundError):
                digest = hashlib.blake2b(path.read_bytes()).hexdigest()
                if self.seen.get(run_id, digest) != digest:
                    self.violation("repeated without need", f"{run_id} was written again")
                if run_id not in self.seen:
                    try:
                        verify_files(path.parent, checksums(read_record(path)))
                        self.seen[run_id] = digest
                    except UserError as error:
                        # A record that was cut here is set aside by the next call.
                        if not self.hits[run_id]:
                            self.violation("half records", str(error))
        for name in BYSTANDERS:
            path = self.runs.parents[1] / name
            if not path.exists() or path.read_text() != f"{name} is mine\n":
                self.violation("user's files touched", name)
        for run_id in self.seen:
            if not (self.runs / run_id / "record.json").exists():
                self.violation("lost", run_id)

    def check_attempts(self) -> None:
        """Count attempts against what happened to them, and jobs of a run at the same time."""
        for run in self.runs.glob("toy-*"):
            attempts = len(list(run.glob("attempt-*")))
            if attempts > 1 + self.hits[run.name]:
                what = f"{run.name}: {attempts} attempts, {self.hits[run.name]} reasons"
                self.violation("repeated without need", what)
        form = "--format=comment,start,end,nodelist,jobid"
        env = {**self.cluster.environment, "SLURM_TIME_FORMAT": "%s"}
        words = ["sacct", "-nXPDa", "-S", "now-1day", form]
        said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
        spans: dict[str, list[tuple[int, int, str]]] = {}
        for line in said.splitlines():
            comment, start, end, nodes, job = line.split("|")
            if start.isdecimal() and end.isdecimal() and nodes != "None assigned":
                spans.setdefault(comment, []).append((int(start), int(end), job))
        for comment, jobs in spans.items():
            jobs.sort()
            for (_, end, job), (start, _, other) in itertools.pairwise(jobs):
                if start < end:
                    self.violation("two jobs of a run at once", f"{comment}: {job}, {other}")

    def finish(self) -> None:
        """Call Snakemake, left alone, until all runs are done."""
        for _ in range(CALLS):
            self.start()
            assert self.snakemake is not None
            try:
                code = self.snakemake.wait(CALL_S)
            except subprocess.TimeoutExpired:
                self.violation("waits without end", f"a call of {CALL_S:g} s")
                print((self.project.path / "out").read_text()[-3000:])
                self.kill_snakemake()
                continue
            self.check()
            if code == 0:
                break
        if len(self.seen) != RUNS:
            self.violation("lost", f"{len(self.seen)} of {RUNS} runs are done")
        self.check_attempts()


def soak(folder: Path, seed: int, troubles: int) -> Counter[str]:
    """Run the campaign in ``folder`` through so many troubles; counts of what must never be."""
    with Cluster(tempfile.mkdtemp(prefix="slurm-")) as cluster:
        slurm = PACKED if seed % 2 else SLURM
        project = slurm_project(folder, cluster, slurm)
        clone = slurm_project(folder.with_name("clone"), cluster, slurm)
        for caller in (project, clone):
            caller.write("c.yaml", CAMPAIGN)
        results = project.path / "results"
        results.mkdir()
        disk = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", results]
        subprocess.run(disk, check=True)
        try:
            state = Soak(project, clone, seed)
            state.start()
            wait_until(lambda: bool(state.queue()), 60)
            state.stand_by()
            while state.troubles.total() < troubles:
                state.start()
                wait_until(lambda: len(state.queue()) > 1, state.draw.uniform(0.5, 12))
                time.sleep(state.draw.uniform(0, 4))
                state.check()
                state.happen()
            state.finish()
            attempts = len(list(state.runs.glob("*/attempt-*")))
        finally:
            subprocess.run(["umount", "--lazy", results], check=True)
    print(
        f"\n{state.troubles.total()} troubles over {RUNS} runs, {attempts} attempts (seed {seed}):"
    )
    for kind, count in sorted(state.troubles.items()):
        print(f"  {count:3} {kind}")
    kinds = ("lost", "repeated without need", "half records", "two jobs of a run at once")
    more = ("cancelled by the end of a call", "user's files touched", "waits without end")
    for kind in (*kinds, *more):
        print(f"{state.violations[kind]:5} {kind}")
    return state.violations


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=TROUBLES, help=f"default: {TROUBLES}")
    parser.add_argument("--seed", type=int, default=1, help="default: 1")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        violations = soak(Path(folder) / "project", given.seed, given.kills)
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
