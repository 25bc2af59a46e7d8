"""The workflow through Snakemake itself, with a benchmark that is done in milliseconds."""

import csv
import shutil
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Project, make_project
from tests.fakes.two_benchmarks import BOTH, add_toy_fast

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: toys
site: toy
experiments:
  scaling:
    benchmark: toy
    scaling: weak
    axes: {ranks: [1, 2]}
    repeats: 2
"""


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("finished") / "project")
    project.write("c.yaml", CAMPAIGN)
    done = project.snakemake("--configfile", "c.yaml", "--until", "run")
    assert done.returncode == 0, done.stderr
    assert len(project.records()) == 4
    return project


@pytest.fixture
def finished(finished_once: Project, tmp_path: Path) -> Project:
    """A copy, with its times, of a project whose campaign has run."""
    return Project(shutil.copytree(finished_once.path, tmp_path / "project"))


def test_runs_are_measured_again_by_the_users_wish_only(finished: Project) -> None:
    before = finished.records()
    said = finished.scalesweep("run", "c.yaml", "--again", "nothing")
    assert said.returncode == 1 and "--again: 'nothing' is no experiment" in said.stderr
    assert "allowed: disturbed, scaling" in said.stderr and finished.records() == before
    dry = finished.scalesweep("run", "c.yaml", "--again", "scaling", "-n")
    assert "4 finished runs to be measured again" in dry.stderr and finished.records() == before
    again = finished.scalesweep("run", "c.yaml", "--again", "scaling", "--", "--until", "run")
    assert again.returncode == 0, again.stderr
    assert finished.records().keys() == before.keys()
    aside = [*finished.path.glob("results/runs/*/*/record.json.broken")]
    assert len(aside) == len([*finished.path.glob("results/runs/*/*/attempt-2")]) == 4


def test_a_results_folder_that_was_moved_still_reads(finished: Project) -> None:
    moved = finished.path / "some where" / "results"
    moved.parent.mkdir()
    (finished.path / "results").rename(moved)
    # One more point, and one that fails: every rule and the report after a failure work there too,
    # also where no history can be written.
    failing = "  x: {benchmark: toy, axes: {behaviour: [exit3]}}\n"
    finished.write("c.yaml", f"history: /proc/none\n{CAMPAIGN}{failing}")
    done = finished.snakemake("--configfile", "c.yaml", "--config", f"results={moved}")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert f"report: {moved}/report.html" in said and "no report" not in said
    # Why it failed, and not with which command.
    assert "toy-r1" in said and "CalledProcessError" not in said and "Error in rule" not in said
    assert "NON_ZERO_EXIT" in (moved / "report.html").read_text()
    assert not (finished.path / "results" / "runs").exists()


def test_two_benchmarks_are_compared_and_an_unsupported_point_is_not_tried_again(
    project: Project,
) -> None:
    add_toy_fast(project.path / "workflow" / "benchmarks")
    odd = "  odd: {benchmark: toy, axes: {behaviour: [good, unsupported]}}\n"
    project.write("c.yaml", f"campaign: two\nsite: toy\nexperiments:\n{odd}  both:{BOTH}")
    done = project.snakemake("--configfile", "c.yaml", "--config", "history=kept")
    assert done.returncode == 0, done.stderr
    why = "behaviour unsupported: this machine has no such thing"
    report = (project.path / "results" / "report.html").read_text()
    assert "Unsupported points" in report and why in report and "1 unsupported" in report
    with (project.path / "results" / "plan.csv").open() as file:
        rows = {row["behaviour"]: row for row in csv.DictReader(file) if row["experiment"] == "odd"}
    assert rows["unsupported"]["status"] == "unsupported" and rows["unsupported"]["reason"] == why
    again = project.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
    words = ("--configfile", "c.yaml", "--config", "retry=unsupported")
    tried = project.snakemake("--until", "run", *words)
    assert tried.returncode == 0, tried.stderr
    folder = project.path / "results" / "runs" / "toy" / rows["unsupported"]["run_id"]
    assert (folder / "attempt-2").is_dir() and not (folder / "attempt-3").exists()

    # The benchmarks of one experiment: a series each, and their ratio (times 1 and 1.01 s over 0.6
    # and 0.611 s). Each is kept in the history for itself.
    tables = project.path / "results" / "tables" / "both"
    scaling = pd.read_parquet(tables / "scaling.parquet").groupby("benchmark")["ranks"]
    assert scaling.apply(list).to_dict() == {"toy": [1, 2], "toy_fast": [1, 2]}
    ratios = pd.read_parquet(tables / "comparisons.parquet")
    ratios = ratios[ratios["parameter"] == "benchmark"]
    assert set(ratios["value"]) == {"toy_fast"}
    assert ratios["ratio"].between(1.65, 1.67).all() and ratios["low"].dropna().gt(1.5).all()
    assert (project.path / "results/figures/both/ratio-benchmark-later.svg").is_file()
    assert "<b>toy</b>, version 1; <b>toy_fast</b>, version 1" in report
    sessions = pd.read_parquet(project.path / "kept" / "sessions")["experiment"]
    assert {"both.toy", "both.toy_fast"} <= set(sessions)
