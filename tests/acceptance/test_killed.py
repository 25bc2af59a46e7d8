"""A run is whole or pending: kill anything at any time, nothing is lost, nothing done twice.

Signals take turns: kill -9, SIGTERM and Ctrl-C, which reaches all of a call. The first three are
the call's; a seed (``KILLED_SEED``) draws the others from it and all processes that work for it.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.acceptance import places
from tests.acceptance.made import Program
from tests.conftest import Project, make_project
from tests.slurm.cluster import Cluster, wait_until
from tests.slurm.support import slurm_project

pytestmark = pytest.mark.slow

SEED = int(os.environ.get("KILLED_SEED", "1"))
SIZES = 4
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
# What an uninterrupted call may take, and one that was told to end.
CALL_S, END_S = 400, 60
KILLABLE = Program(
    "killable", {"size": 1, "seconds": 0.5},
    {"rate": {"unit": "items/s", "better": "higher", "scope": "total"}},
    {"command": ["{python}", "{benchmark}/main.py", "{size}", "{seconds}", "{out}"],
     "work": {"scope": "rank", "samples": "size"}},
)  # fmt: skip
# Two processes for some seconds, then a rate.
# It tells `starts` of its run and its processes, and `twice` of others that are at the same run.
# The second process has a session of its own, as ranks under horovodrun.
PROGRAM = """\
import json, os, subprocess, sys, time
from pathlib import Path
size, seconds, run = sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]).parent.name
def begun(pid):
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else fields[18]
wait = [sys.executable, "-S", "-c", f"import time; time.sleep({seconds})"]
rank = subprocess.Popen(wait, start_new_session=True)
for line in Path("starts").read_text().splitlines():
    other = json.loads(line)
    if other["run"] == run and any(begun(pid) == when for pid, when in other["pids"]):
        with Path("twice").open("a") as file:
            file.write(line + "\\n")
about = {"run": run, "time": time.time(), "pids": [(p, begun(p)) for p in (os.getpid(), rank.pid)]}
with Path("starts").open("a") as file:
    file.write(json.dumps(about) + "\\n")
if rank.wait():
    sys.exit("error: a rank has died")
print("rate", 100 + int(size))
"""
CAMPAIGN = """\
campaign: killed
site: {site}
experiments:
  e:
    benchmark: killable
    axes: {{size: {{from: 1, to: {sizes}, step: 1}}}}
    fixed: {{seconds: {seconds}}}
    time_limit_minutes: 2
"""

Start = Callable[..., "subprocess.Popen[str]"]


class Killed:
    """A campaign that is killed and called again, and what it must not do."""

    def __init__(self, project: Project, start: Start, site: str, seconds: float):
        """Nothing has run yet."""
        self.project, self._start, self._site, self.seconds = project, start, site, seconds
        self.results = project.path / "results"
        # Signals sent, and how many runs these may have ended.
        self.kills = self.hit = 0
        self.seen: dict[str, bytes] = {}
        self.draw = random.Random(SEED)
        self.before_kill: Callable[[], None] = lambda: None
        KILLABLE.write(project)
        project.write("workflow/benchmarks/killable/main.py", PROGRAM)
        project.write("starts", "")
        self._plan(SIZES)
        self.process = self.call()

    def _plan(self, sizes: int) -> None:
        """Write the campaign of so many points; more are added when none is left to be killed."""
        self.sizes = sizes
        text = CAMPAIGN.format(site=self._site, sizes=sizes, seconds=self.seconds)
        self.project.write("c.yaml", text)

    def call(self, *words: str) -> "subprocess.Popen[str]":
        """Start a call of Snakemake, whose words go to the file ``out``."""
        return self._start("--configfile", "c.yaml", *words)

    def starts(self) -> list[dict[str, Any]]:
        """What the program has told each time that it was started."""
        return [json.loads(it) for it in (self.project.path / "starts").read_text().splitlines()]

    def alive(self) -> list[psutil.Process]:
        """Every process that works in the project's folder but the call itself."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                inside = Path(process.cwd()).is_relative_to(self.project.path)
                if inside and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return [process for process in found if process.pid != self.process.pid]

    def kill(self) -> tuple[bool, signal.Signals]:
        """Bring one kill about; whether it was the call's, and its signal."""
        sent = SIGNALS[self.kills % 3]
        while True:
            if self.process.poll() is not None:
                if len(places.records(self.results)) == self.sizes:
                    self._plan(self.sizes + SIZES)
                self.process = self.call()
            if self.draw.random() < 0.8:  # else while the campaign is read
                self._await_start(len(self.starts()))
            time.sleep(self.draw.uniform(0, self.seconds))
            whole = self.kills < len(SIGNALS) or self.draw.random() < 0.5
            with contextlib.suppress(psutil.Error, ProcessLookupError, IndexError):
                victim = psutil.Process(self.process.pid) if whole else self._other()
                if victim.status() == psutil.STATUS_ZOMBIE:
                    continue
                words = " ".join(Path(word).name for word in victim.cmdline()[:3])
                self.before_kill()
                if whole and sent == signal.SIGINT:  # a terminal sends it to the whole group
                    self.hit += self._at_work()
                    os.killpg(victim.pid, sent)
                else:
                    self.hit += 1
                    victim.send_signal(sent)
                self.kills += 1
                print(sent.name, "call" if whole else words, f"{len(self.starts())} starts")
                if whole:
                    self.process.wait(END_S)
                return whole, sent

    def _await_start(self, before: int) -> None:
        """Wait until the program is started once more, or the call has ended."""
        wait_until(lambda: len(self.starts()) > before or self.process.poll() is not None, END_S)

    def _at_work(self) -> int:
        """How many runs a Ctrl-C may end: on Slurm several are at work."""
        alive = {process.pid for process in self.alive()}
        return max(1, sum(any(pid in alive for pid, _ in one["pids"]) for one in self.starts()))

    def _other(self) -> psutil.Process:
        return self.draw.choice(self.alive())

    def check(self) -> None:
        """Each record is whole, has its own run's number, and is the one that it was."""
        records = places.records(self.results)
        assert {run_id: records.get(run_id) for run_id in self.seen} == self.seen
        for run_id in records.keys() - self.seen.keys():
            record = json.loads(records[run_id])
            assert record["metrics"]["rate"]["value"] == 100 + record["point"]["size"]
        self.seen = records
        assert not (self.project.path / "twice").exists()

    def finish(self) -> None:
        """Call until all is done: each run once, and again where a kill may have ended it."""
        for _ in range(3):
            code = self.process.wait(CALL_S)
            self.check()
            if code == 0 and len(self.seen) == self.sizes:
                break
            self.process = self.call()
        assert {row["status"] for row in places.plan(self.results)} == {"done"}
        assert len(self.seen) == self.sizes
        told = self.starts()
        print(f"{self.kills} kills, {len(told)} starts of {self.sizes} runs (seed {SEED})")
        assert len(told) <= self.sizes + self.hit
        done = {it.parent.name: it.stat().st_mtime for it in self.results.glob(places.RECORDS)}
        assert [one for one in told if one["time"] > done[one["run"]]] == []
        self.process = self.call()
        assert self.process.wait(CALL_S) == 0 and len(self.starts()) == len(told)
        assert not self.alive()

    def two_at_once(self) -> None:
        """Two calls for the same new runs: each is measured once, and one call at least does it."""
        text = (self.project.path / "c.yaml").read_text()
        self.project.write("c.yaml", text.replace("fixed:", "repeats: 2\n    fixed:"))
        before = len(self.starts())
        self.process, other = self.call(), self.call()
        codes = {self.process.wait(CALL_S), other.wait(CALL_S)}
        assert 0 in codes and codes <= {0, 1}
        assert len(self.starts()) == before + self.sizes
        assert len(places.records(self.results)) == 2 * self.sizes
        self.check()

    def end(self) -> None:
        """End what a failure has left."""
        self.process.kill()
        for process in self.alive():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait()


def test_killed_here(tmp_path: Path, whole: bool) -> None:
    project = make_project(tmp_path / "project")

    def start(*words: str) -> "subprocess.Popen[str]":
        with (project.path / "out").open("a") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *words], cwd=project.path, text=True,
                stdout=out, stderr=out, env={**os.environ, "PYTHONPATH": ""},
                start_new_session=True,
            )  # fmt: skip

    killed = Killed(project, start, "toy", seconds=1)
    try:
        for _ in range(15 if whole else 4):
            killed.kill()
            killed.check()
        killed.finish()
        killed.two_at_once()
    finally:
        killed.end()


@pytest.mark.slurm
def test_killed_on_slurm(cluster: Cluster, tmp_path: Path, whole: bool) -> None:
    project = slurm_project(tmp_path / "p", cluster, "{startup_minutes: 0.5, max_attempts: 5}")

    def queue() -> set[str]:
        return set(cluster.run("squeue", "-ho%A").split())

    def cancelled(jobs: set[str]) -> set[str]:
        words = ("sacct", "-nXPa", "--state=CANCELLED", f"-j{','.join(sorted(jobs))}", "-ojobid")
        return set(cluster.run(*words).split()) if jobs else set()

    def start(_: str, campaign: str) -> "subprocess.Popen[str]":
        return project.run(campaign)  # which waits for the jobs of the call that was killed

    killed = Killed(project, start, "toy_cluster", seconds=4)
    jobs: set[str] = set()
    killed.before_kill = lambda: jobs.update(queue())
    stay: set[str] = set()
    try:
        for _ in range(15 if whole else 3):
            jobs.clear()
            of_the_call, sent = killed.kill()
            # docs/guide/slurm.md: Ctrl-C cancels the jobs of a call, else they stay.
            if of_the_call and sent == signal.SIGINT:
                assert wait_until(lambda: not queue(), END_S)
                stay -= jobs
            else:
                stay |= jobs
            killed.check()
        killed.finish()
        assert stay and cancelled(stay) == set()
        killed.two_at_once()
    finally:
        killed.end()
