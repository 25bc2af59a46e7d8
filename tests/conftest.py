"""What tests share: a copy of the project with a toy benchmark, and a way to call Snakemake."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
pytest.register_assert_rewrite(
    "tests.fakes", "tests.report.visits", "tests.slurm.jobs", "tests.slurm.support", "tests.soak"
)

# The groups of tests that take longest, in this order before all others: workers then end together
# (docs/testing.md has their times). A group is a file, or what the marker xdist_group names.
LONGEST = (
    "slurm", "workflow/test_readme", "workflow/test_cnn_campaigns", "workflow/test_campaigns",
    "soak/test_kills", "workflow/test_foreign", "report/test_large_report",
)  # fmt: skip
PARTS = ("Snakefile", "scalesweep", "workflow", "config", "profiles", "resources")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a file on one worker, for they share its fixtures; longest groups first."""
    places: dict[str, tuple[int, int]] = {}
    groups: dict[str, str] = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        group = str(item.path.relative_to(TESTS).with_suffix("")) if mark is None else mark.args[0]
        if mark is None:
            item.add_marker(pytest.mark.xdist_group(group))
        turn = LONGEST.index(group) if group in LONGEST else len(LONGEST)
        places.setdefault(group, (turn, len(places)))
        groups[item.nodeid] = group
    items.sort(key=lambda item: places[groups[item.nodeid]])


@dataclass
class Project:
    """A copy of the project in a folder of its own."""

    path: Path

    def snakemake(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call Snakemake there as a user would."""
        home = self.path / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-m", "snakemake", *words],
            cwd=self.path,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(home), "PYTHONPATH": ""},
            timeout=300,
            check=False,
        )

    def write(self, name: str, text: str) -> Path:
        """Write a file below the project."""
        path = self.path / name
        path.write_text(text)
        return path

    def records(self) -> dict[str, int]:
        """Run id -> modification time in ns of every record there is."""
        found = self.path.glob("results/runs/*/*/record.json")
        return {path.parent.name: path.stat().st_mtime_ns for path in found}


def make_project(folder: Path) -> Project:
    """Copy the project, with the benchmark ``toy`` and a site ``toy``, into a new folder."""
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)
    (folder / "slurm").symlink_to("profiles/slurm")
    shutil.copytree(ROOT / "tests" / "toy", folder / "workflow" / "benchmarks" / "toy")
    (folder / "config" / "sites" / "toy.yaml").write_text(
        "site: toy\nnodes: 4\ncores_per_node: 2\noversubscribe: true\n"
        "launch: {single: [], multi: []}\n"
    )
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
