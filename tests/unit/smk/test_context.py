"""Markers follow the records, and asking for resources has no effect."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.adaptive.policy import plan_runs
from scalesweep.config.campaign import Campaign
from scalesweep.core.status import Status
from scalesweep.slurm.commands import LiveJob, job_name, staging_comment
from scalesweep.smk.context import LATER, SnakemakeContext
from scalesweep.smk.preflight import Preflight
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import RunState

Load = Callable[..., Campaign]
BODY = "axes: {ranks: [1, 2]}"


@pytest.fixture
def campaign(
    toy: Path, campaign_of: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Campaign:
    monkeypatch.chdir(tmp_path)
    site = toy / "sites" / "toy.yaml"
    content = site.read_text().replace("oversubscribe: true\n", "")
    site.write_text(f"{content}slurm: {{max_attempts: 3}}\n")
    return campaign_of(BODY)


def context_of(campaign: Campaign) -> tuple[SnakemakeContext, Submission]:
    runs = campaign.unique_runs()
    states = dict.fromkeys(runs, RunState(Status.NEW))
    submission = Submission(campaign, states, runs)
    return SnakemakeContext(campaign, states, {}, runs, submission=submission), submission


def test_another_executor_is_refused(campaign: Campaign) -> None:
    context, _ = context_of(campaign)
    preflight = Preflight(context)
    preflight.look_at(next(iter(context.runs)))
    with pytest.raises(Exception, match="--executor slurm: runs are submitted by the executor"):
        preflight.begin("slurm")


def test_live_jobs_by_name_and_comment(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    context, submission = context_of(campaign)
    here, hers = context.runs
    ours = job_name(campaign.runs_folder)
    elsewhere = job_name(campaign.runs_folder.parent / "other_site")
    data = Path(campaign.site.data)
    queue = [
        LiveJob(5, "PENDING", ours, here),
        LiveJob(6, "PENDING", elsewhere, hers),
        LiveJob(7, "PENDING", elsewhere, staging_comment(data / "set")),
        LiveJob(8, "PENDING", ours, staging_comment(Path("/elsewhere/set"))),
    ]
    monkeypatch.setattr("scalesweep.slurm.commands.live_jobs", lambda patience_s: queue)
    submission.find_live()
    assert {run_id: job.job_id for run_id, job in submission.live.items()} == {here: 5}
    assert context.pending == (hers,)
    # Two must not make the same files, whatever results folders they are for.
    assert [job.job_id for job in submission.staging] == [7]


def test_larger_counts_begin_after_smaller_ones_are_over(
    campaign_of: Load, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stop = "scaling: weak\nstop_below: 50 %\nrepeats: 2"
    plan = plan_runs(campaign_of(f"axes: {{ranks: [1, 2, 4]}}\n{stop}"))
    runs = plan.campaign.unique_runs()

    def awaited(status: Status, **more: Any) -> list[int]:
        first = {i for i, (_, run) in runs.items() if run.point["ranks"] == 1}
        states = {i: RunState(status if i in first else Status.NEW) for i in runs}
        context = SnakemakeContext(plan.campaign, states, {}, runs, repeats=plan, **more)
        return sorted(runs[run_id][1].point["ranks"] for run_id in context.awaited)

    assert awaited(Status.NEW) == [1, 1]
    # `scalesweep run` tries nothing again that has failed in an earlier round.
    assert awaited(Status.FAILED) == [1, 1] and awaited(Status.FAILED, round=LATER) == []


def test_a_trial_is_one_run_of_each_shape(campaign_of: Load) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2], size: [1, 2]}\nrepeats: 3")
    runs = campaign.unique_runs()
    states = dict.fromkeys(runs, RunState(Status.NEW))
    context = SnakemakeContext(campaign, states, {"try": "shapes"}, runs)
    counts = sorted(runs[i][1].point["ranks"] for i in context.awaited)
    assert counts == [1, 2] and len(SnakemakeContext(campaign, states, {}, runs).awaited) == 12
    # The first of each, in the campaign's order; none of a shape that is known.
    first = {i: context.positions[i] for i in context.awaited}
    assert min(context.positions.values()) in first.values()
    done = {**states, context.awaited[0]: RunState(Status.DONE, "s", wall_s=1.0)}
    again = SnakemakeContext(campaign, done, {"try": "shapes"}, runs)
    assert again.awaited == context.awaited[1:]
