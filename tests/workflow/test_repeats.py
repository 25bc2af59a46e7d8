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
  # The same work on more ranks takes as long: efficiency 1, 0.5, 0.25 and 0.125.
  stopped:
    benchmark: toy
    scaling: strong
    linked: [{ranks: 1, size: 8}, {ranks: 2, size: 4}, {ranks: 4, size: 2}, {ranks: 8, size: 1}]
    repeats: 2
    stop: {when: efficiency < 0.3}
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


def test_only_wide_points_get_more_repeats_whatever_fails_or_is_lost(project: Project) -> None:
    project.write("c.yaml", BROKEN)
    block = project.snakemake("--configfile", "c.yaml")
    assert repeats(project) == {"good": 3, "noisy": 3}
    assert "more runs planned by what was measured: call again" in block.stderr, block.stderr
    # One call of `scalesweep run` goes all the way, although a point fails.
    first = project.scalesweep("run", "c.yaml", "--", "-c2")
    assert first.returncode != 0 and "NON_ZERO_EXIT" in first.stderr, first.stderr
    assert first.stderr.count("error: 3 runs failed") == 1 and first.stderr.count("report:") == 1
    assert "Error in rule" not in first.stderr
    assert repeats(project) == {"good": 3, "noisy": 6}
    assert repeats(project, status="failed") == {"exit3": 3}
    before = project.records()

    # Of the experiment that is stopped counts were measured from the smallest, and none beyond 4.
    with (project.path / "results" / "plan.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "stopped"]
    assert [(row["ranks"], row["status"]) for row in rows] == [
        *2 * [("1", "done"), ("2", "done"), ("4", "done")], ("8", "excluded")
    ]  # fmt: skip
    assert rows[-1]["reason"].startswith("efficiency < 0.3 at ranks 4: efficiency 0.2")
    runs = project.path / "results" / "runs" / "toy"
    times = {row["ranks"]: (runs / row["run_id"] / "record.json").stat() for row in rows[:3]}
    assert times["1"].st_mtime < times["2"].st_mtime < times["4"].st_mtime
    report = (project.path / "results" / "report.html").read_text()
    assert "efficiency &lt; 0.3 at ranks 4" in report

    # The next call runs what failed, again in vain, and nothing that was left out.
    second = project.snakemake("--configfile", "c.yaml")
    assert second.returncode != 0 and "error: 3 runs failed" in second.stderr
    assert repeats(project) == {"good": 3, "noisy": 6}
    assert len(list(project.path.glob("results/runs/toy/*/attempt-3"))) == 3
    after = project.records()
    assert {run_id: after[run_id] for run_id in before} == before
    report = (project.path / "results" / "report.html").read_text()
    assert "Points within ±5.0 %: 1 of 3; at behaviour noisy it stays ±" in report
    entries = json.loads((project.path / "results" / "plan.json").read_text())["experiments"]
    states = {one["point"]["behaviour"]: one["state"] for one in entries[0]["repeats"]["points"]}
    assert states == {"exit3": "waiting", "good": "precise", "noisy": "wide"}

    # As after a kill in the middle of a block: what was lost runs again, and nothing else. Finished
    # repeats beyond the new maximum are used.
    noisy = ids(project, "noisy")
    (project.path / "results" / "runs" / "toy" / noisy[4] / "record.json").unlink()
    (project.path / "results" / "runs" / "toy" / ".rows.json").unlink()
    project.write("c.yaml", CAMPAIGN.replace("max: 6", "max: 4"))
    third = project.snakemake("--configfile", "c.yaml")
    assert third.returncode == 0, third.stderr
    changed = {run_id for run_id, time in project.records().items() if after.get(run_id) != time}
    assert changed == {noisy[4]} and ids(project, "noisy") == noisy
    again = project.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in again.stdout + again.stderr
