"""Snakemake starts runs in the order of the campaign, the control between them, and records it."""

import json
import re

import pytest

from tests.conftest import Project

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: ordered
site: toy
order: {seed: 3}
control: {experiment: e, point: {ranks: 1, size: 3}, every: 2}
experiments:
  e:
    benchmark: toy
    axes: {ranks: [1, 2], size: [1, 3]}
    repeats: 2
"""


def test_runs_start_in_the_order_of_the_campaign(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^toy.*, repeat \d+: (\d+) of 10", done.stderr, re.M)
    assert [int(place) for place in shown] == list(range(1, 11))

    plan = json.loads((project.path / "results" / "plan.json").read_text())
    source, control = plan["experiments"]
    assert (control["name"], control["control"], plan["order"]) == (
        "control", True, {"seed": 3, "of": 10},
    )  # fmt: skip
    places = {run["run_id"]: run["position"] for e in (source, control) for run in e["runs"]}
    assert sorted(run["position"] for run in control["runs"]) == [1, 4, 7, 10]
    records = {
        path.parent.name: json.loads(path.read_text())
        for path in project.path.glob("results/runs/toy/*/record.json")
    }
    for run_id, record in records.items():
        assert record["order"] == {"seed": 3, "position": places[run_id], "of": 10}
    started = sorted(records, key=lambda run_id: records[run_id]["started"])
    assert [places[run_id] for run_id in started] == list(range(1, 11))
    page = (project.path / "results" / "report.html").read_text()
    assert "<h2>Control</h2>" in page and "in random order (seed 3)" in page

    # Another order measures nothing again; more points run in theirs, with the control.
    before = project.records()
    project.write("c.yaml", CAMPAIGN.replace("seed: 3", "seed: 4").replace("3]", "3, 5]"))
    dry = project.snakemake("--configfile", "c.yaml", "-n")
    left = re.findall(r": (\d+) of 16 \((toy-\S+)\)$", dry.stdout, re.M)
    assert len(left) == 6 and not {run_id for _, run_id in left} & before.keys()
