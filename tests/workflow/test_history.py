"""A program tracked over its commits: one of them makes it slower; history and bisection find it.

Most sessions are measured by the launcher in this process, as Snakemake would start it; the last
one by the CI job of docs/guide/history.md, as it is written there.
"""

import os
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
import yaml

from scalesweep.analysis.table_io import write_parquet
from scalesweep.compute.launcher import launch
from scalesweep.config.campaign import load_campaign
from scalesweep.core.record import RECORD
from scalesweep.history.session import sessions_of
from scalesweep.history.store import append
from scalesweep.jobs.run_spec import run_spec
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.state.results_folder import claim_folder
from scalesweep.state.stock import take_stock
from scalesweep.tables.summary import build_summary
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
    """The commit ``number``; from ``BAD`` on a step takes half as long again."""
    seconds = 0.09 if number >= BAD else 0.06
    (repository / "main.py").write_text(PROGRAM.format(seconds=seconds, remark=number))
    return commit(repository, f"Change {number}")


def measure(project: Project, number: int) -> None:
    """What Snakemake does for a campaign, as far as the history goes."""
    campaign = load_campaign(Path("c.yaml"), results=f"results/{number}")
    claim_folder(campaign.results, "results")
    for run_id, (experiment, run) in campaign.unique_runs().items():
        (campaign.runs_folder / run_id).mkdir(parents=True)
        assert launch(run_spec(campaign, experiment, run), project.path) == 0
    write_plan(
        campaign, build_plan(campaign, take_stock(campaign, campaign.unique_runs())), as_json=True
    )
    records = [campaign.runs_folder / run_id / RECORD for run_id in campaign.unique_runs()]
    write_parquet(build_summary(records), campaign.results / "summary.parquet", {})
    assert campaign.history is not None
    assert len(append(campaign.history.folder, sessions_of(campaign))) == 1
    assert append(campaign.history.folder, sessions_of(campaign)) == []


def ci_job(project: Project, number: int) -> dict[str, "subprocess.CompletedProcess[str]"]:
    """Carry out the job of docs/guide/history.md in a checkout; what its steps say, by name."""
    page = (ROOT / "docs" / "guide" / "history.md").read_text().partition("## A CI job")[2]
    (text,) = re.findall(r"```yaml\n(performance:.*?)```", page, re.DOTALL)
    home = project.path / "home"
    home.mkdir()
    (home / "scalesweep").symlink_to(ROOT)
    (home / "history").symlink_to(project.path / "kept")
    project.write("performance.yaml", CAMPAIGN)
    env = {**os.environ, "HOME": str(home), "GITHUB_RUN_ID": str(number), "PYTHONPATH": ""}
    steps = yaml.safe_load(text)["performance"]["steps"]
    return {
        step["name"]: subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=project.path, env=env, capture_output=True, text=True, check=False,
        )
        for step in steps if "run" in step
    }  # fmt: skip


@pytest.mark.measured
def test_a_planted_slowdown_is_found_and_bisected(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.path)
    repository = project.path / "program"
    for folder in (repository, project.path / "benchmarks" / "tracked"):
        folder.mkdir(parents=True)
    project.write("benchmarks/tracked/benchmark.yaml", BENCHMARK)
    project.write("c.yaml", CAMPAIGN)
    commits = []
    for number in range(COMMITS):
        commits.append(change(repository, number))
        if number < COMMITS - 1:
            measure(project, number)
    steps = ci_job(project, COMMITS - 1)
    done = steps.pop("Measure")
    assert done.returncode == 0, done.stdout + done.stderr
    kept = project.path / "kept"
    assert (kept / "history.html").is_file()  # it is up to date after every campaign
    rows = pd.read_parquet(kept / "sessions")
    assert rows.groupby("commit")["value"].count().to_dict() == dict.fromkeys(commits, 3)
    assert set(rows["repository"]) == {str(repository)} and not rows["dirty"].any()

    done = steps.pop("Judge")
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
