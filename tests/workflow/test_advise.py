"""`scalesweep advise`, and what its campaign file measures, which the original campaign finds."""

from pathlib import Path

import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.status import Status
from scalesweep.state.results_folder import claim_folder
from scalesweep.state.stock import take_stock
from tests.conftest import Project
from tests.fakes.records import times, write_run

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: now
site: toy
experiments:
  e:
    benchmark: toy
    scaling: weak
    axes: {ranks: [1, 2, 4]}
    fixed: {ranks_per_node: 4}
"""


def test_what_is_advised_is_run_and_found_by_the_original_campaign(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("c.yaml", CAMPAIGN)
    monkeypatch.chdir(project.path)
    monkeypatch.setattr("scalesweep.config.benchmark.BENCHMARKS", Path("workflow/benchmarks"))
    monkeypatch.setattr("scalesweep.config.site.SITES", Path("config/sites"))
    campaign = load_campaign(Path("c.yaml"))
    claim_folder(campaign.results, "results")
    campaign.runs_folder.mkdir(parents=True)
    for run in campaign.experiments[0].runs:
        took = [[1 + 0.02 * run.point["ranks"]] * run.point["ranks"]] * 3
        write_run(
            project.path / campaign.runs_folder, run.run_id, times(took, took), benchmark="toy",
            point=dict(run.point), wall_s=3.0, work={"samples_per_epoch": run.point["ranks"]},
        )  # fmt: skip
    before = project.records()

    words = ("--budget", "0.01")
    said = project.scalesweep("advise", "c.yaml", *words)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "to measure it: snakemake --configfile results/advice.yaml" in said.stdout
    assert project.records() == before
    advised = load_campaign(Path("results/advice.yaml"))
    ids = {run.run_id for run in advised.experiments[0].runs}
    done = project.snakemake("results/summary.parquet", "--configfile", "results/advice.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    # Just those that were advised were run; what was there stays as it was.
    assert set(project.records()) == ids > set(before)
    assert before.items() <= project.records().items()
    counts = sorted({run.point["ranks"] for run in advised.experiments[0].runs})
    wider = CAMPAIGN.replace("[1, 2, 4]", str(counts))
    project.write("c.yaml", wider.replace("axes", "repeats: 5\n    axes"))
    campaign = load_campaign(Path("c.yaml"))
    states = take_stock(campaign, campaign.unique_runs())
    assert {run_id for run_id, state in states.items() if state.status == Status.DONE} == ids
