"""What tests share: a copy of the project with a toy benchmark, and a way to call Snakemake."""

import compileall
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.snakemake_calls import call
from tests.slurm.cluster import Cluster
from tests.slurm.jobs import REASON, clear

if TYPE_CHECKING:
    import pandas as pd

# To rewrite the assertions of all tests takes each worker longer than to import the result: it is
# kept, also where PYTHONDONTWRITEBYTECODE is set. What tests start keeps that setting.
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parents[1]
TOY_SITE = (
    "site: toy\nnodes: 4\ncores_per_node: 2\noversubscribe: true\nlaunch: {single: [], multi: []}\n"
)
PARTS = ("Snakefile", "scalesweep", "workflow", "config", "profiles", "resources")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try tests that compare measured times again: a busy moment passes, a defect does not."""
    for item in items:
        if item.get_closest_marker("measured"):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=["AssertionError"]))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say in the last lines what was skipped and what to install for it, each reason once."""
    yield
    skipped = terminalreporter.getreports("skipped")
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.line(f"skipped {count}: {reason}")


@dataclass
class Project:
    """A copy of the project in a folder of its own."""

    path: Path

    def snakemake(self, *words: str, minutes: int = 15) -> subprocess.CompletedProcess[str]:
        """Call Snakemake there as a user would, for so long at most."""
        return self._call("snakemake", words, minutes)

    def scalesweep(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call the command of this copy there as a user would, for 15 minutes at most."""
        return self._call("scalesweep", words)

    def _call(
        self, module: str, words: Sequence[str], minutes: int = 15
    ) -> subprocess.CompletedProcess[str]:
        return call(module, words, self.path, self.environment(), seconds=60 * minutes)

    def environment(self) -> dict[str, str]:
        """What a user has, whose home is empty."""
        home = self.path / "home"
        home.mkdir(exist_ok=True)
        return {**os.environ, "HOME": str(home), "PYTHONPATH": ""}

    def write(self, name: str, text: str) -> Path:
        """Write a file below the project."""
        path = self.path / name
        path.write_text(text)
        return path

    def campaign(self, text: str, *words: str, code: int = 0) -> str:
        """Write the campaign c.yaml and call Snakemake on it, which ends so; what it says."""
        self.write("c.yaml", text)
        done = self.snakemake(*words, "--configfile", "c.yaml")
        said = done.stdout + done.stderr
        assert done.returncode == code and "Traceback" not in said, said
        return said

    def take_every_run(self) -> None:
        """Leave no run out for what others did on this machine meanwhile."""
        path = self.path / "scalesweep" / "tables" / "machine_load.py"
        text, share = path.read_text(), "DISTURBED = 0.1 "
        assert share in text
        path.write_text(text.replace(share, "DISTURBED = 9 "))

    def plan(self) -> list[dict[str, str]]:
        """The rows of the plan."""
        with (self.path / "results" / "plan.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def table(self, experiment: str, name: str) -> "pd.DataFrame":
        """A table of an experiment."""
        import pandas as pd  # not for tests of the library that need none

        return pd.read_parquet(self.path / "results" / "tables" / experiment / f"{name}.parquet")

    def report(self) -> str:
        """The page of the report."""
        return (self.path / "results" / "report.html").read_text()

    def results(self) -> dict[str, dict[str, Any]]:
        """Run id -> content of every record there is."""
        paths = self.path.glob("results/runs/*/*/record.json")
        return {path.parent.name: json.loads(path.read_bytes()) for path in paths}

    def records(self) -> dict[str, int]:
        """Run id -> modification time in ns of every record there is."""
        found = self.path.glob("results/runs/*/*/record.json")
        return {path.parent.name: path.stat().st_mtime_ns for path in found}


@cache
def _compiled() -> "tempfile.TemporaryDirectory[str]":
    """The project's parts with their bytecode, which is good for copies that keep the times."""
    folder = tempfile.TemporaryDirectory(prefix="project-")
    for part in PARTS:
        source, copy = ROOT / part, Path(folder.name, part)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    compileall.compile_dir(folder.name, quiet=2)
    return folder


def make_project(folder: Path) -> Project:
    """Copy the project, with the benchmark ``toy`` and a site ``toy``, into a new folder."""
    shutil.copytree(_compiled().name, folder)
    (folder / "slurm").symlink_to("profiles/slurm")
    shutil.copytree(ROOT / "tests" / "toy", folder / "workflow" / "benchmarks" / "toy")
    (folder / "config" / "sites" / "toy.yaml").write_text(TOY_SITE)
    return Project(folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A copy of the project with the toy benchmark; nothing has run there."""
    return make_project(tmp_path / "project")


@pytest.fixture
def write_yaml(tmp_path: Path) -> Callable[[str], Path]:
    """Write a YAML file and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "file.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def booted() -> Iterator[Cluster]:
    """One test cluster for all files of a worker; tests of booting boot their own."""
    if REASON:
        pytest.skip(REASON)
    with Cluster(tempfile.mkdtemp(prefix="slurm-")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(booted: Cluster) -> Iterator[Cluster]:
    """The cluster; what a file leaves in its queue is cancelled."""
    yield booted
    clear(booted)
