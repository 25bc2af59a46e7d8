"""A finished campaign costs little more than an empty Snakefile."""

import os
import shutil
import statistics
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.acceptance import places
from tests.acceptance.made import Program, write_campaign
from tests.conftest import ROOT, Project

pytestmark = pytest.mark.slow

BOUND = 1.5
PROGRAM = Program(
    "finished", {"size": 1, "batch": 1},
    {"rate": {"unit": "items/s", "better": "higher", "scope": "total"}},
)  # fmt: skip
EMPTY = 'rule all:\n    input: "there"\n'


def finished(project: Project, sizes: int, batches: int) -> Path:
    """Results of a campaign of so many points, all finished and reported."""
    PROGRAM.write(project)
    axes = {"size": [*range(1, sizes + 1)], "batch": [*range(1, batches + 1)]}
    results = write_campaign(project, "done", {"e": {"benchmark": PROGRAM.name, "axes": axes}})
    for size, batch in product(*axes.values()):
        PROGRAM.record(results, {"size": size, "batch": batch}, 0, {"rate": size + batch / 7})
    done = project.snakemake("--configfile", "done.yaml")
    assert done.returncode == 0, done.stderr
    return results


def cpu_s(folder: Path, *words: str) -> float:
    """CPU seconds of a call of Snakemake and what it starts: other work disturbs them less."""
    command = [sys.executable, "-m", "snakemake", "-c1", *words]
    unset = ("PYTHONDONTWRITEBYTECODE",)
    env = {name: value for name, value in os.environ.items() if name not in unset}
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (folder / "said").read_text()
    return usage.ru_utime + usage.ru_stime


def test_finished_runs_cost_at_most_half_as_much_again_as_nothing(
    project: Project, tmp_path: Path, whole: bool
) -> None:
    results = finished(project, *((100, 100) if whole else (25, 20)))
    empty = tmp_path / "empty"
    shutil.copytree(ROOT / "profiles", empty / "profiles")
    (empty / "Snakefile").write_text(EMPTY)
    (empty / "there").touch()
    before = (results / places.REPORT).stat().st_mtime_ns
    for dry in ((), ("-n",)) if whole else ((),):
        ours, theirs = (project.path, "--configfile", "done.yaml", *dry), (empty, *dry)
        cpu_s(*ours)  # compiles
        ratios = []
        for turn in range(7 if whole else 3):
            if turn % 2:
                here, there = cpu_s(*ours), cpu_s(*theirs)
            else:
                there, here = cpu_s(*theirs), cpu_s(*ours)
            ratios.append(here / there)
        print(f"{len(places.plan(results))} runs: {sorted(ratios)}")
        assert statistics.median(ratios) <= BOUND, ratios
    assert (results / places.REPORT).stat().st_mtime_ns == before
