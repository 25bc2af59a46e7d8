"""Progress of runs: what failed is counted once it is sure."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.status import Status
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.progress import Progress
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import RunState
from tests.fakes.executor import Stub

Load = Callable[..., Campaign]


def context_of(campaign: Campaign, slurm: bool = False) -> SnakemakeContext:
    runs = campaign.unique_runs()
    states = {run_id: RunState(Status.NEW) for run_id in runs}
    submission = Submission(campaign, states, runs) if slurm else None
    return SnakemakeContext(campaign, states, {}, runs, submission=submission, to_run={*runs})


def fail(context: SnakemakeContext, run_id: str, detail: str, second: int) -> None:
    folder = Path(context.runs_folder, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "failure.json"
    path.write_text(json.dumps({"cause": "NON_ZERO_EXIT", "detail": detail}))
    moment = time.time() + second
    os.utime(path, (moment, moment))


def test_what_is_about_to_be_tried_again_has_not_failed(
    campaign_of: Load, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    site = toy / "sites" / "toy.yaml"
    site.write_text(site.read_text().replace("oversubscribe: true\n", "") + "slurm: {}\n")
    context = context_of(campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2"), slurm=True)
    submission = context.submission
    assert submission is not None
    again, refused, failed, lost = context.runs
    submission.in_hand |= {again, lost}
    progress = Progress(context)
    for run_id in (again, failed):
        fail(context, run_id, "exit code 3", 1)
    submission.give_up(failed, "NON_ZERO_EXIT", "exit code 3")
    submission.refuse(Stub(refused), "Invalid account")
    for job, run_id in enumerate((again, refused, failed)):
        progress.begins(job, run_id)
        progress.ends(job)
    assert progress._failed == {refused, failed}
    # A record is there, but not yet where Snakemake looks for its marker.
    submission.in_hand.discard(again)
    assert progress.finish()
    said = capsys.readouterr().err
    assert "runs: 0 of 4 done, 3 failed" in said
    assert "failed: NOT_SUBMITTED: Invalid account: " in said
    assert "failed: KILLED: its job completed, but left no record: " in said
    assert "failed: NON_ZERO_EXIT: exit code 3: " in said


def test_the_line_of_a_run_says_what_failed_and_what_time_is_left(
    campaign_of: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    context = context_of(campaign_of("repeats: 3"))
    first, second, third = context.runs
    progress = Progress(context)
    assert progress.begins(1, first) == ""
    folder = Path(context.runs_folder, first)
    folder.mkdir(parents=True)
    (folder / "record.json").touch()
    assert progress.ends(1) == progress.ends(77) == ""  # another job
    assert progress.begins(2, second).startswith(", about ")
    fail(context, second, "exit code 3", 1)
    progress.ends(2)
    assert progress.begins(3, third).startswith(", 1 failed, about ")
