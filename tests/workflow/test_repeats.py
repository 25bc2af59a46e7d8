"""Repeats until points are precise, through Snakemake, with a benchmark done in milliseconds."""

import csv
import json

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

# Repeats of the good point grow by 1 % each; those of the noisy one are 0.8 and 1.2 in turn.
CAMPAIGN = """
campaign: toys
site: toy
control: {experiment: once, every: 4}
experiments:
  precise:
    benchmark: toy
    axes: {behaviour: [good, noisy]}
    fixed: {size: 3}
    repeats: {min: 3, max: 6, until: 5 %}
  once: {benchmark: toy}
"""
BROKEN = CAMPAIGN.replace("[good, noisy]", "[exit3, good, noisy]")


def repeats(project: Project, **status: str) -> dict[str, int]:
    """Finished repeats by behaviour, as plan.csv has them."""
    with (project.path / "results" / "plan.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "precise"]
    found: dict[str, int] = {}
    for row in rows:
        if row["status"] == status.get("status", "done"):
            found[row["behaviour"]] = found.get(row["behaviour"], 0) + 1
    return found


def ids(project: Project, behaviour: str) -> list[str]:
    """Runs of a point by repeat."""
    with (project.path / "results" / "plan.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "precise"]
    return [row["run_id"] for row in rows if row["behaviour"] == behaviour]


def test_only_wide_points_get_more_repeats_whatever_fails_or_is_killed(project: Project) -> None:
    project.write("c.yaml", BROKEN)
    first = project.snakemake("--configfile", "c.yaml")
    assert first.returncode != 0 and "NON_ZERO_EXIT" in first.stderr
    # The look waited for the run that failed; the report is there all the same, and says so.
    assert repeats(project) == {"good": 3, "noisy": 3}
    assert repeats(project, status="failed") == {"exit3": 3}
    plan = project.snakemake("plan", "--configfile", "c.yaml").stdout
    assert "repeats in precise: 3 to 6, until ±5 % of total_throughput: " in plan
    assert "1 point needs about 3 runs more; 1 point precise after 3 runs; 1 point waits" in plan
    before = project.records()

    # One call goes all the way for the others, although the same point fails again.
    second = project.snakemake("--configfile", "c.yaml")
    assert second.returncode != 0
    assert repeats(project) == {"good": 3, "noisy": 6}
    assert len(list(project.path.glob("results/runs/toy/*/attempt-2"))) == 3
    after = project.records()
    assert {run_id: after[run_id] for run_id in before} == before
    report = (project.path / "results" / "report.html").read_text()
    assert "behaviour noisy" in report and "stayed wide" in report

    # Without it nothing is left to do; the ids are those of a fixed number.
    project.write("c.yaml", CAMPAIGN)
    assert project.snakemake("--configfile", "c.yaml").returncode == 0
    again = project.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
    assert project.records() == after
    noisy = ids(project, "noisy")
    entries = json.loads((project.path / "results" / "plan.json").read_text())["experiments"]
    states = {one["point"]["behaviour"]: one["state"] for one in entries[0]["repeats"]["points"]}
    assert states == {"good": "precise", "noisy": "wide"}

    # As after a kill in the middle of a block: what was lost runs again, and nothing else. Finished
    # repeats beyond the new maximum are used.
    (project.path / "results" / "runs" / "toy" / noisy[4] / "record.json").unlink()
    (project.path / "results" / "runs" / "toy" / ".repeats.json").unlink()
    project.write("c.yaml", CAMPAIGN.replace("max: 6", "max: 4"))
    third = project.snakemake("--configfile", "c.yaml")
    assert third.returncode == 0, third.stderr
    changed = {run_id for run_id, time in project.records().items() if after.get(run_id) != time}
    assert changed == {noisy[4]}
    assert ids(project, "noisy") == noisy
