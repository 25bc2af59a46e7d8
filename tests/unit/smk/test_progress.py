"""Progress of runs: what failed is counted once it is sure, and enough of one kind ends a call."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.planning.run_state import NEW, RunState
from scalesweep.planning.submission import Submission
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.progress import Progress

Load = Callable[..., Campaign]
HEAD = "campaign: test\nsite: toy\n"


def context_of(campaign: Campaign, slurm: bool = False) -> SnakemakeContext:
    runs = campaign.unique_runs()
    states = {run_id: RunState(NEW) for run_id in runs}
    submission = Submission(campaign, states, runs) if slurm else None
    return SnakemakeContext(campaign, states, {}, runs, submission=submission)


def fail(context: SnakemakeContext, run_id: str, detail: str, second: int) -> None:
    folder = Path(context.runs_folder, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "failure.json"
    path.write_text(json.dumps({"cause": "NON_ZERO_EXIT", "detail": detail}))
    moment = time.time() + second
    os.utime(path, (moment, moment))


@pytest.mark.parametrize(("details", "stops"), [("aab", 0), ("baa", 0), ("baaa", 1), ("aaaaaa", 1)])
def test_identical_failures_in_a_row_stop_a_campaign(
    campaign_of: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    details: str,
    stops: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    context = context_of(campaign_of("repeats: 6", f"{HEAD}stop_after: 3\n"))
    stopped: list[int] = []
    progress = Progress(context, lambda: stopped.append(1))
    ends = list(zip(context.runs, details, strict=False))
    for second, (run_id, detail) in enumerate(ends):
        fail(context, run_id, f"wrong in way {detail}", second)
    assert progress.finish() and len(stopped) == stops
    said = capsys.readouterr().err
    assert ("error: 3 identical failures in a row (stop_after)" in said) == bool(stops)


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
    progress = Progress(context, lambda: None)
    for run_id in (again, failed):
        fail(context, run_id, "exit code 3", 1)
    submission.refuse(refused, "Invalid account")
    progress._look()
    assert progress._failed == {refused, failed}
    # A record is there, but not yet where Snakemake looks for its marker.
    submission.in_hand.discard(again)
    assert progress.finish()
    said = capsys.readouterr().err
    assert "runs: 0 of 4 done, 4 failed" in said
    assert "failed: NOT_SUBMITTED: Invalid account: " in said
    assert "failed: KILLED: its job completed, but left no record: " in said
    assert "failed: NON_ZERO_EXIT: exit code 3: " in said
