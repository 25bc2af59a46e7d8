"""The soak's campaign: a project of its own, what is alive in it, and what its files must say."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from scalesweep.core.record import SAMPLES, checksums, read_record, verify_files
from scalesweep.core.status import Status
from scalesweep.state.run_state import scan
from tests.conftest import Project, make_project
from tests.soak.bystanders import Bystanders

HERE = Path(__file__).resolve().parent
RANKS, EPOCHS = 2, 3
CAMPAIGN = """\
campaign: soak
site: soak
experiments:
  steps:
    benchmark: steps
    axes: {{size: {{from: 1, to: {sizes}, step: 1}}}}
    fixed: {{ranks: {ranks}, pause: {pause}}}
    repeats: {repeats}
"""
SITE = """\
site: soak
nodes: 1
cores_per_node: 4
oversubscribe: true
concurrent_runs: 1
launch: {{single: [], multi: ["{{python}}", "{project}/mpirun.py", "{{ranks}}"]}}
"""
WORDS = ("--configfile", "c.yaml")


class ViolationError(AssertionError):
    """Something that must never happen has happened."""


@dataclass
class Soaked(Project):
    """A project with a campaign of `steps`, and what its records were when last looked at."""

    sizes: int = 10
    repeats: int = 3
    seen: dict[str, str] = field(default_factory=dict)

    @cached_property
    def bystanders(self) -> Bystanders:
        """The user's own files in the results folder."""
        return Bystanders(self.path / "results")

    @property
    def runs(self) -> Path:
        """Folder of the runs."""
        return self.path / "results" / "runs" / "soak"

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start Snakemake on the campaign; what it says is added to the file `said`."""
        with (self.path / "said").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *words, *WORDS], cwd=self.path,
                stdout=said, stderr=said, env={**os.environ, "PYTHONPATH": ""},
            )  # fmt: skip

    def alive(self) -> list[psutil.Process]:
        """Every process that was started from this project's folder and has not ended."""
        found = []
        for process in psutil.process_iter():
            try:
                inside = Path(process.cwd()).is_relative_to(self.path)
                if inside and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    @cached_property
    def run_ids(self) -> list[str]:
        """Ids of all planned runs."""
        words = ["workflow/scripts/inventory.py", "--campaign", "c.yaml", "--site", "soak"]
        words += ["--results", "results"]
        subprocess.run([sys.executable, *words], cwd=self.path, check=True, capture_output=True)
        return pd.read_csv(self.path / "results" / "plan.csv")["run_id"].tolist()

    def plan(self) -> Counter[str]:
        """How many runs `snakemake plan` counts as done, failed and new."""
        words = [sys.executable, "-m", "snakemake", "plan", *WORDS]
        said = subprocess.run(
            words, cwd=self.path, env={**os.environ, "PYTHONPATH": ""}, check=False,
            capture_output=True, text=True,
        ).stdout  # fmt: skip
        return Counter({name: int(n) for n, name in re.findall(r"(\d+) (done|failed|new)\b", said)})

    def kept(self, run_id: str) -> Path:
        """Folder of the attempt that a run's record is of."""
        record = json.loads((self.runs / run_id / "record.json").read_bytes())
        return self.runs / run_id / f"attempt-{record['attempt']}"

    def attempts(self) -> Iterator[Path]:
        """Folder of every attempt at a run."""
        return self.runs.glob("*/attempt-*")

    def check(self) -> dict[str, str]:
        """Status of every run; raises ViolationError unless each is done, with the numbers it must
        have and the record it had before, or pending."""
        if gone := self.bystanders.lost():
            raise ViolationError(f"files of the user are lost: {', '.join(gone)}")
        self.bystanders.put()
        status = {}
        for run_id, state in scan(self.runs, self.run_ids, remember=False).items():
            if state.status not in (Status.DONE, Status.FAILED, Status.NEW):
                raise ViolationError(f"{run_id} is {state.status}")
            if state.cause == "BAD_RECORD":
                raise ViolationError(f"{run_id}: {state.detail}")
            status[run_id] = state.status
            if state.status == Status.DONE:
                self._check_record(self.runs / run_id / "record.json")
        lost = {run_id for run_id in self.seen if status[run_id] != Status.DONE}
        if lost:
            raise ViolationError(
                f"finished runs have lost their records: {', '.join(sorted(lost))}"
            )
        for attempt in self.attempts():
            if (attempt / "beside.txt").exists():
                others = (attempt / "beside.txt").read_text().split("\n")
                raise ViolationError(f"{attempt} was measured beside {others[0]}")
        return status

    def _check_record(self, path: Path) -> None:
        content = hashlib.blake2b(path.read_bytes()).hexdigest()
        run_id = path.parent.name
        if self.seen.get(run_id, content) != content:
            raise ViolationError(f"{run_id}: the record of a finished run was written again")
        if run_id not in self.seen:
            record = read_record(path)
            verify_files(path.parent, checksums(record))
            expected = local_times(record["point"]["size"], record["repeat"])
            if not np.array_equal(np.load(path.parent / SAMPLES)["local_times"], expected):
                raise ViolationError(f"{run_id}: other times than its program has measured")
            self.seen[run_id] = content
        last = max(path.parent.glob("attempt-*"), key=number_of)
        if last != self.kept(run_id):
            raise ViolationError(f"{run_id}: was tried again ({last.name}) when it was done")

    def check_tables(self) -> None:
        """Compare plan, summary and tables with what the whole campaign must give."""
        results = self.path / "results"
        plan = pd.read_csv(results / "plan.csv")
        summary = pd.read_parquet(results / "summary.parquet")
        points = pd.read_csv(results / "tables" / "steps" / "points.csv").sort_values("size")
        planned = self.sizes * self.repeats
        size = np.arange(1, self.sizes + 1)
        means = [
            np.mean([local_times(s, repeat)[1:].mean() for repeat in range(self.repeats)])
            for s in size
        ]
        found = {
            "rows of plan.csv": (len(plan), planned),
            "done in plan.csv": ((plan["status"] == "done").sum(), planned),
            "rows of the summary": (len(summary), planned),
            "runs in the summary": (summary["run_id"].nunique(), planned),
            "samples in the summary": (summary["samples"].sum(), self.repeats * RANKS * size.sum()),
            "points": (len(points), self.sizes),
            "repeats of each point": (points["repeats"].tolist(), [self.repeats] * self.sizes),
            "samples of the points": (points["samples"].tolist(), (RANKS * size).tolist()),
            "records": (len(list(self.runs.glob("*/record.json"))), planned),
        }
        for what, (value, expected) in found.items():
            if value != expected:
                raise ViolationError(f"{what}: {value}, not {expected}")
        if not np.allclose(points["local_time_mean_later"], means, rtol=1e-12, atol=0):
            raise ViolationError("mean times of the points differ from those of the programs")
        if "soak" not in (results / "report.html").read_text():
            raise ViolationError("the report is not of this campaign")


def local_times(size: int, repeat: int) -> np.ndarray:
    """What a run of `steps` reports, by epoch and rank."""
    epoch, rank = np.arange(EPOCHS)[:, None], np.arange(RANKS)[None, :]
    times: np.ndarray = 0.1 * size + 0.01 * rank + 0.001 * epoch + 0.0001 * repeat
    return times


def make_soaked(path: Path, sizes: int = 10, repeats: int = 3, pause: float = 0.05) -> Soaked:
    """A project with a campaign of `sizes` points; nothing has run."""
    make_project(path)
    shutil.copytree(HERE / "steps", path / "workflow" / "benchmarks" / "steps")
    shutil.copy(HERE / "mpirun.py", path)
    project = Soaked(path, sizes, repeats)
    project.write("config/sites/soak.yaml", SITE.format(project=path))
    values = {"sizes": sizes, "repeats": repeats, "ranks": RANKS, "pause": pause}
    project.write("c.yaml", CAMPAIGN.format(**values))
    return project


def number_of(attempt: Path) -> int:
    """Number of an attempt."""
    return int(attempt.name.removeprefix("attempt-"))


def wait_until(true: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition; raises ViolationError if it does not come true."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise ViolationError(f"{what}: not within {seconds:g} s")
        time.sleep(0.02)
