"""The workflow through Snakemake itself, with a benchmark that is done in milliseconds."""

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import Project, make_project
from tests.fakes.folder_tree import tree

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
FAILING = CAMPAIGN + "  broken:\n    benchmark: toy\n    axes: {behaviour: [good, exit3, nan]}\n"


def changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {run_id for run_id, time in after.items() if before.get(run_id) != time}


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("finished") / "project")
    project.write("c.yaml", CAMPAIGN)
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    assert len(project.records()) == 4
    project.write("first.txt", done.stderr)
    return project


@pytest.fixture
def finished(finished_once: Project, tmp_path: Path) -> Project:
    """A copy, with its times, of a project whose campaign has run."""
    return Project(shutil.copytree(finished_once.path, tmp_path / "project"))


def test_lost_figures_and_tables_are_made_again(finished: Project) -> None:
    before = finished.records()
    results = finished.path / "results"
    shutil.rmtree(results / "figures")
    (results / "plan.csv").unlink()
    done = finished.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    assert (results / "figures" / "scaling" / "index.json").is_file() and (
        results / "plan.csv"
    ).is_file()
    assert finished.records() == before


def test_runs_are_measured_again_by_the_users_wish_only(finished: Project) -> None:
    before = finished.records()
    said = finished.scalesweep("run", "c.yaml", "--again", "nothing")
    assert said.returncode == 1 and "--again: 'nothing' is no experiment" in said.stderr
    assert "allowed: disturbed, scaling" in said.stderr and finished.records() == before
    dry = finished.scalesweep("run", "c.yaml", "--again", "scaling", "-n")
    assert "4 finished runs to be measured again" in dry.stderr and finished.records() == before
    again = finished.scalesweep("run", "c.yaml", "--again", "scaling")
    assert again.returncode == 0, again.stderr
    assert finished.records().keys() == before.keys()
    aside = [*finished.path.glob("results/runs/*/*/record.json.broken")]
    assert len(aside) == len([*finished.path.glob("results/runs/*/*/attempt-2")]) == 4


def test_failure_is_data(project: Project) -> None:
    project.write("c.yaml", FAILING)
    first = project.snakemake("--configfile", "c.yaml")
    assert first.returncode != 0
    before = project.records()
    # The good point of `broken` is the 1-rank point of `scaling`: one run serves both.
    assert len(before) == 4
    assert re.search(r"^failed: NON_ZERO_EXIT: exit code 3: the toy is broken: .*behaviour=exit3 ",
                     first.stderr, re.M), first.stderr  # fmt: skip
    report = (project.path / "results" / "report.html").read_text()
    assert "NON_ZERO_EXIT" in report and "BAD_RESULT" in report
    with (project.path / "results" / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(r["cause"] for r in rows if r["status"] == "failed") == [
        "BAD_RESULT", "NON_ZERO_EXIT",
    ]  # fmt: skip

    program = project.path / "workflow" / "benchmarks" / "toy" / "main.py"
    program.write_text(program.read_text().replace("sys.exit(3)", "pass"))
    second = project.snakemake("--configfile", "c.yaml")
    assert second.returncode != 0  # NaN is still NaN
    assert len(changed(before, project.records())) == 1
    attempts = project.path.glob("results/runs/toy/*/attempt-2")
    assert len(list(attempts)) == 2  # the two that had failed, nothing else
    report = (project.path / "results" / "report.html").read_text()
    assert "NON_ZERO_EXIT" not in report and "BAD_RESULT" in report


def test_report_on_what_is_there(finished: Project) -> None:
    finished.write("c.yaml", CAMPAIGN.replace("[1, 2]", "[1, 2, 4]"))
    before = finished.records()
    done = finished.snakemake("report", "--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    assert finished.records() == before
    plan = json.loads((finished.path / "results" / "plan.json").read_text())
    statuses = [run["status"] for run in plan["experiments"][0]["runs"]]
    assert sorted(set(statuses)) == ["done", "new"] and statuses.count("new") == 2


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


def test_an_unsupported_point_is_neither_failed_nor_tried_again(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN.replace("repeats: 2", "repeats: 1") + (
        "  odd:\n    benchmark: toy\n    axes: {behaviour: [good, unsupported]}\n"
    ))  # fmt: skip
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    why = "behaviour unsupported: this machine has no such thing"
    report = (project.path / "results" / "report.html").read_text()
    assert "Unsupported points" in report and why in report and "1 unsupported" in report
    with (project.path / "results" / "plan.csv").open() as file:
        rows = {row["behaviour"]: row for row in csv.DictReader(file) if row["experiment"] == "odd"}
    assert rows["unsupported"]["status"] == "unsupported" and rows["unsupported"]["reason"] == why
    again = project.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
    tried = project.snakemake("--configfile", "c.yaml", "--config", "retry=unsupported")
    assert tried.returncode == 0, tried.stderr
    folder = project.path / "results" / "runs" / "toy" / rows["unsupported"]["run_id"]
    assert (folder / "attempt-2").is_dir() and not (folder / "attempt-3").exists()


def test_a_framework_that_is_missing_hinders_its_own_points_until_it_is_there(
    project: Project,
) -> None:
    shutil.copytree(
        project.path / "workflow" / "benchmarks" / "toy",
        project.path / "workflow" / "benchmarks" / "toy_torch",
    )
    declared = project.path / "workflow" / "benchmarks" / "toy_torch" / "benchmark.yaml"
    text = declared.read_text().replace("name: toy\n", "name: toy_torch\n")
    declared.write_text(f"{text}framework: torch\n")
    campaign = "  other:\n    benchmark: toy_torch\n    axes: {ranks: [1, 2]}\n"
    project.write("c.yaml", CAMPAIGN.replace("repeats: 2", "repeats: 1") + campaign)
    site = project.path / "config" / "sites" / "toy.yaml"
    site.write_text(f"{site.read_text()}python: {{torch: .torch/bin/python}}\n")
    for options in ((), ("--config", "retry=unsupported")):
        done = project.snakemake("--configfile", "c.yaml", *options)
        assert done.returncode == 0, done.stderr
        assert {name.rpartition("/")[2][:5] for name in project.records()} == {"toy-r"}
    path = project.path / ".torch" / "bin" / "python"
    why = f"python.torch: '{path}' is not there: `make torch` makes it"
    with (project.path / "results" / "plan.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "other"]
    assert [row["status"] for row in rows] == ["unsupported"] * 2
    assert all(row["reason"].endswith(why) for row in rows)
    report = (project.path / "results" / "report.html").read_text()
    assert "make torch" in report and "2 unsupported" in report
    path.parent.mkdir(parents=True)
    path.symlink_to(sys.executable)
    mended = project.snakemake("--configfile", "c.yaml")
    assert mended.returncode == 0 and len(project.records()) == 4, mended.stderr


def test_the_same_runs_on_another_site_stand_beside(finished: Project) -> None:
    runs = finished.path / "results" / "runs"
    shutil.copytree(runs / "toy", runs / "faster")
    (runs / "faster" / ".index.json").unlink()
    done = finished.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    table = finished.path / "results" / "tables" / "scaling" / "comparisons.csv"
    with table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "site"]
    assert {(row["value"], row["base_value"]) for row in rows} == {("faster", "toy")}
    assert {float(row["ratio"]) for row in rows} == {1.0}
    again = finished.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_results_folder_of_others_is_refused_and_nothing_is_written(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    thesis = project.path / "thesis"
    thesis.mkdir()
    (thesis / "report.html").write_text("mine")
    for words in (("plan",), ()):
        before = tree(project.path)
        done = project.snakemake(*words, "--configfile", "c.yaml", "--config", "results=thesis")
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert done.returncode != 0 and len(lines) == 1, done.stderr
        assert "holds files that scalesweep did not make (report.html)" in lines[0]
        kept = {".snakemake", "__pycache__", "home"}
        new = [
            name
            for name in tree(project.path).keys() - before.keys()
            if kept.isdisjoint(Path(name).parts)
        ]
        assert new == [] and (thesis / "report.html").read_text() == "mine"
