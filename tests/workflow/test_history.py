"""A program tracked over its commits: one of them makes it slower; history and bisection find it.

The last session is measured by the CI job of docs/guide/history.md, as it is written there; those
before it are made of that one.
"""

import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

from scalesweep.history.store import append, load
from tests.conftest import ROOT, Project
from tests.fakes.tracked import BENCHMARK, commit, git

pytestmark = pytest.mark.slow

PROGRAM = """
import time

def step():
    time.sleep({seconds})

times = []
for _ in range(3):
    begin = time.perf_counter()
    step()
    times.append(time.perf_counter() - begin)
print(f"step: {{min(times)}} s, {remark}")
"""
CAMPAIGN = """
campaign: nightly
site: toy
programs: {tracked: program/main.py}
history: kept
experiments:
  steps: {benchmark: tracked, repeats: 3}
"""
COMMITS, BAD = 8, 6


def change(repository: Path, number: int) -> str:
    """The commit ``number`` of that day; from ``BAD`` on a step takes half as long again."""
    seconds = 0.09 if number >= BAD else 0.06
    (repository / "main.py").write_text(PROGRAM.format(seconds=seconds, remark=number))
    date = f"2026-01-0{number + 1}T12:00:00Z"
    return commit(repository, f"Change {number}", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)


def keep_earlier(folder: Path, commits: list[str]) -> None:
    """Sessions of the commits before the last one, each a bit longer than the one before."""
    rows = load(folder)
    for number, each in enumerate(commits[:-1]):
        days = pd.Timedelta(days=COMMITS - 1 - number)
        times = {name: rows[name] - days for name in ("commit_time", "started", "ended")}
        value = rows["value"] * (1 + number / 1000) / (1 if number >= BAD else 1.5)
        own = {"commit": each, "group": each, "subject": f"Change {number}", "value": value}
        assert len(append(folder, rows.assign(**times, **own))) == 1


def ci_job(project: Project) -> dict[str, str]:
    """The steps of the job of docs/guide/history.md, whose checkout the project is now."""
    page = (ROOT / "docs" / "guide" / "history.md").read_text().partition("## A CI job")[2]
    (text,) = re.findall(r"```yaml\n(performance:.*?)```", page, re.DOTALL)
    home, kept = project.path / "home", project.path / "kept"
    home.mkdir()
    kept.mkdir()
    (home / "scalesweep").symlink_to(ROOT)
    (home / "history").symlink_to(kept)
    project.write("performance.yaml", CAMPAIGN)
    steps = yaml.safe_load(text)["performance"]["steps"]
    return {step["name"]: step["run"] for step in steps if "run" in step}


def carry_out(project: Project, step: str) -> "subprocess.CompletedProcess[str]":
    """Carry out a step of the CI job."""
    home = str(project.path / "home")
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step], cwd=project.path, capture_output=True, text=True,
        env={**os.environ, "HOME": home, "GITHUB_RUN_ID": "7", "PYTHONPATH": ""}, check=False,
    )  # fmt: skip


@pytest.mark.measured
def test_a_planted_slowdown_is_found_and_bisected(project: Project) -> None:
    repository = project.path / "program"
    for folder in (repository, project.path / "benchmarks" / "tracked"):
        folder.mkdir(parents=True)
    project.write("benchmarks/tracked/benchmark.yaml", BENCHMARK)
    project.write("c.yaml", CAMPAIGN)
    commits = [change(repository, number) for number in range(COMMITS)]
    steps = ci_job(project)
    done = carry_out(project, steps.pop("Measure"))
    assert done.returncode == 0, done.stdout + done.stderr
    kept = project.path / "kept"
    assert (kept / "history.html").is_file()  # it is up to date after every campaign
    keep_earlier(kept, commits)
    rows = pd.read_parquet(kept / "sessions")
    assert rows.groupby("commit")["value"].count().to_dict() == dict.fromkeys(commits, 3)
    assert set(rows["repository"]) == {str(repository)} and not rows["dirty"].any()

    done = carry_out(project, steps.pop("Judge"))
    assert not steps and done.returncode == 1, done.stdout + done.stderr
    (line,) = [text for text in done.stdout.splitlines() if text.startswith("regression: ")]
    assert f"since {commits[BAD - 1][:10]}..{commits[BAD][:10]} (Change {BAD})" in line
    assert "step_time +" in line and "error: 1 regression" in done.stderr
    table = pd.read_csv(kept / "tables" / "verdicts.csv")
    assert table["verdict"].tolist() == ["regression"]
    assert table["low"][0] < 1.5 < table["high"][0] * 1.1
    bisect(project, commits)


def bisect(project: Project, commits: list[str]) -> None:
    """The slowdown's commit by name, without touching the user's checkout; what has been measured
    of two commits is not measured again, and the history has it as settled."""
    repository = project.path / "program"
    (repository / "main.py").write_text("not to be measured")
    before = git(repository, "worktree", "list")
    done = project.scalesweep("bisect", commits[4], commits[7][:9], "--campaign", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert f"first bad commit: {commits[BAD]} (Change {BAD})" in said
    assert any(line.startswith("cost: the step, 1 point: 8 runs, about ") for line in said)
    assert any("1 file with local changes" in line for line in said)
    assert (repository / "main.py").read_text() == "not to be measured"
    assert git(repository, "worktree", "list") == before
    assert len(list((project.path / "kept" / "alternate").iterdir())) == 1

    words = ("ab", commits[BAD - 1], commits[BAD], "--campaign", "c.yaml")
    plan = project.scalesweep(*words, "-n")
    assert plan.stdout.endswith("cost: nothing: all of it has been measured\n")
    done = project.scalesweep(*words)
    assert done.returncode == 0, done.stderr
    assert "\nregression: steps: the only point: step_time +" in done.stdout
    table = pd.read_csv(project.path / "kept" / "tables" / "verdicts.csv")
    assert table["alternate"].tolist() == ["regression"]
