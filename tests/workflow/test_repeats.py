"""Repeats until points are precise, through Snakemake, with a benchmark done in milliseconds."""

import json
from collections import Counter

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
    repeats: {min: 3, max: 5, until: 5 %}
  once: {benchmark: toy}
  # The same work on more ranks takes as long: efficiency 1, 0.5, 0.25 and 0.125.
  stopped:
    benchmark: toy
    scaling: strong
    linked: [{ranks: 1, size: 8}, {ranks: 2, size: 4}, {ranks: 4, size: 2}, {ranks: 8, size: 1}]
    repeats: 2
    stop_below: 30 %
"""
BROKEN = CAMPAIGN.replace("[good, noisy]", "[exit3, good, noisy]")


def repeats(project: Project) -> Counter[str]:
    """Finished repeats of ``precise`` by behaviour."""
    points = [record["point"] for record in project.results().values()]
    return Counter(point["behaviour"] for point in points if point["size"] == 3)


def test_only_wide_points_get_more_repeats_whatever_fails_or_is_lost(project: Project) -> None:
    project.take_every_run()
    said = project.campaign(BROKEN, "--until", "run", code=1)
    assert repeats(project) == {"good": 3, "noisy": 3}
    assert "more runs planned by what was measured: call again" in said
    # One call of `scalesweep run` goes all the way, although a point fails.
    first = project.scalesweep("run", "c.yaml", "--", "-c2")
    assert first.returncode != 0 and "NON_ZERO_EXIT" in first.stderr, first.stderr
    assert first.stderr.count("error: 3 runs failed") == 1 and first.stderr.count("report:") == 1
    assert "Error in rule" not in first.stderr
    assert repeats(project) == {"good": 3, "noisy": 5}
    before = project.records()
    assert "Points within ±5.0 %: 1 of 3; at behaviour noisy it stays ±" in project.report()
    entries = json.loads((project.path / "results" / "plan.json").read_text())["experiments"]
    states = {each["point"]["behaviour"]: each["state"] for each in entries[0]["repeats"]["points"]}
    assert states == {"exit3": "waiting", "good": "precise", "noisy": "wide"}

    # Of the experiment that is stopped counts were measured from the smallest, and none beyond 4.
    plan = project.plan()
    stopped = [row for row in plan if row["experiment"] == "stopped"]
    assert [(row["ranks"], row["status"]) for row in stopped] == [
        *2 * [("1", "done"), ("2", "done"), ("4", "done")], ("8", "excluded")
    ]  # fmt: skip
    assert stopped[-1]["reason"].startswith("efficiency < 0.3 at ranks 4: efficiency 0.2")
    assert [before[row["run_id"]] for row in stopped[:3]] == sorted(
        before[row["run_id"]] for row in stopped[:3]
    )
    assert "efficiency &lt; 0.3 at ranks 4" in project.report()

    # As after a kill in the middle of a block: what was lost runs again, and nothing else. Finished
    # repeats beyond the new maximum are used.
    noisy = [row["run_id"] for row in plan if row["behaviour"] == "noisy"]
    (project.path / "results" / "runs" / "toy" / noisy[3] / "record.json").unlink()
    (project.path / "results" / "runs" / "toy" / ".rows.json").unlink()
    project.campaign(CAMPAIGN.replace("max: 5", "max: 4"), "--until", "run")
    now = project.records()
    assert {run_id for run_id in now if before[run_id] != now[run_id]} == {noisy[3]}
    assert repeats(project) == {"good": 3, "noisy": 5}
