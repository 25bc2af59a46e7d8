"""A campaign on a real Grid Engine, up to its tables; what failed is taken up again."""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT, Project, make_project
from tests.fakes.snakemake_calls import python
from tests.schedulers.grid_engine import grid_engine, lacks
from tests.slurm.cluster import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(lacks()), reason=lacks())]

CAMPAIGN = """\
campaign: batch
site: toy
experiments:
  scaling: {benchmark: toy, scaling: weak, axes: {ranks: [1, 2, 4]}}
  behaviours: {benchmark: toy, axes: {behaviour: [exit3, hang_once]}}
"""
SECONDS = 240.0
# More often than a user would.
QUICK = ("--seconds-between-status-checks", "1", "--latency-wait", "5")


@pytest.fixture(scope="module")
def queue() -> Iterator[Mapping[str, str]]:
    """The variables of a Grid Engine that is up."""
    with tempfile.TemporaryDirectory(prefix="sge-") as folder, grid_engine(Path(folder)) as own:
        yield {**os.environ, **own}


def _start(project: Project, queue: Mapping[str, str], *words: str) -> "subprocess.Popen[str]":
    call = [python(), "-m", "snakemake", *words, *QUICK, "--configfile", "c.yaml"]
    own = {"HOME": project.environment()["HOME"], "PYTHONPATH": str(ROOT / "plugins")}
    with (project.path / "out").open("w") as out:
        return subprocess.Popen(
            [*call, "--profile", "profiles/sge"], cwd=project.path, text=True, stdout=out,
            stderr=out, env={**queue, **own},
        )  # fmt: skip


def _queued(queue: Mapping[str, str]) -> list[str]:
    said = subprocess.run(["qstat"], env=queue, text=True, capture_output=True, check=True).stdout
    return [line.split()[0] for line in said.splitlines()[2:]]


def _wait(done: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    assert wait_until(lambda: done() or process.poll() is not None, SECONDS) and done()


def _attempts(project: Project) -> dict[str, int]:
    """Run -> attempts."""
    runs = project.path.glob("results/runs/toy/toy-*")
    return {run.name: len(list(run.glob("attempt-*"))) for run in runs}


def _causes(project: Project) -> list[str]:
    found = project.path.glob("results/runs/toy/*/failure.json")
    return sorted(json.loads(path.read_text())["cause"] for path in found)


def test_a_campaign_on_grid_engine(tmp_path: Path, queue: Mapping[str, str]) -> None:
    project = make_project(tmp_path / "there")
    project.write("c.yaml", CAMPAIGN)
    with _start(project, queue, "plan") as process:
        assert process.wait(SECONDS) == 0
    said = (project.path / "out").read_text()
    assert re.search(r"4 x qsub .* -pe mpi 2 -l h_rt=0:62:0", said), said

    # One fails, and one hangs, whose job is ended by the user.
    with _start(project, queue) as process:
        _wait(lambda: len(project.records()) == 3 and len(_queued(queue)) == 1, process)
        _wait(lambda: _causes(project) == ["NON_ZERO_EXIT"], process)
        subprocess.run(["qdel", *_queued(queue)], env=queue, check=True, stdout=subprocess.DEVNULL)
        assert process.wait(SECONDS) == 1
    assert "2 failed" in (project.path / "out").read_text()
    assert _causes(project) == ["KILLED", "NON_ZERO_EXIT"]
    first = _attempts(project)
    assert [*first.values()] == [1] * 5

    with _start(project, queue) as process:
        assert process.wait(SECONDS) == 1
    assert _causes(project) == ["NON_ZERO_EXIT"] and len(project.records()) == 4
    again = {run for run, count in _attempts(project).items() if count > first[run]}
    assert len(again) == 2  # only what had failed

    # The toy's times are made up: those of a first repeat, whatever the ranks.
    rows = project.table("scaling", "runs")[["ranks", "total_time_mean_init"]]
    assert [*rows.itertuples(index=False, name=None)] == [(1, 1.01), (2, 1.01), (4, 1.01)]
