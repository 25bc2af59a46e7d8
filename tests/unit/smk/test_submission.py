"""What comes of a job that has failed, in one line, and of one that was not submitted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.job_spec import ORDER, Order, write_order
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import read_failure
from scalesweep.core.status import Status
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.sacct import Job
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import RunState
from tests.fakes.executor import Stub
from tests.fakes.slurm_jobs import JOB, TIMEOUT


def judge(submission: Submission, run_id: str, attempt: int, job: Job) -> tuple[bool, str]:
    return submission.judge(Stub(run_id, attempt), job)


ASKED = {"nodes": 1, "minutes": 2, "limit_s": 60.0, "mem_mb": 612}


@pytest.fixture
def submission(
    toy: Path, campaign_of: Callable[..., Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Submission:
    monkeypatch.chdir(tmp_path)
    # Slurm takes every request.
    monkeypatch.setattr(commands, "refusal", lambda words, *_, **more: None)
    site = toy / "sites" / "toy.yaml"
    content = site.read_text().replace("oversubscribe: true\n", "")
    slurm = "{max_attempts: 3, max_minutes: 60, startup_minutes: 1}"
    site.write_text(f"{content}memory_gib_per_node: 4\nslurm: {slurm}\n")
    campaign = campaign_of("axes: {ranks: [1]}\ntime_limit_minutes: 1")
    runs = campaign.unique_runs()
    states = {run_id: RunState(Status.NEW) for run_id in runs}
    found = Submission(campaign, states, runs)
    for run_id in runs:
        folder = campaign.runs_folder / run_id
        folder.mkdir(parents=True)
        order: Any = dict.fromkeys(Order.__required_keys__, "") | {"asked": ASKED}
        write_order(folder / ORDER, order)
        found.in_hand.add(run_id)
    return found


@pytest.mark.parametrize(
    ("job", "attempt", "line"),
    [
        (TIMEOUT, 1, "TIMEOUT after 60 s, trying again with 120 s (job 2 of 3)"),
        (TIMEOUT, 3, "TIMEOUT after 60 s"),
        (
            replace(JOB, state="OUT_OF_MEMORY"), 1,
            "OUT_OF_MEMORY with 612 MiB per node, trying again with 1,224 MiB (job 2 of 3)",
        ),
        (
            replace(JOB, state="NODE_FAIL"), 2,
            "NODE_FAIL: job 12 lost a node of node[1-2], trying again without node1, "
            "node2 (job 3 of 3)",
        ),
        # Slurm knows no node of a job that lost its own before it began.
        (
            replace(JOB, state="NODE_FAIL", node_list=""), 1,
            "NODE_FAIL: job 12 lost a node of its allocation, trying again (job 2 of 3)",
        ),
        (replace(JOB, state="CANCELLED", state_detail="by 0"), 1,
         "CANCELLED: job 12 was cancelled by user 0"),
        (sacct.Job(12, sacct.GONE), 1,
         "LAUNCH_FAILED: Slurm job 12 is gone from queue and accounting, trying again "
         "(job 2 of 3)"),
    ],
)  # fmt: skip
def test_a_failed_job_is_a_line(submission: Submission, job: Job, attempt: int, line: str) -> None:
    (run_id,) = submission.runs
    again = "trying again" in line
    assert judge(submission, run_id, attempt, job) == (not again, f"{run_id}: {line}")
    # Of a run that is tried again it is not yet said that it failed.
    assert (run_id in submission.in_hand, run_id in submission.given_up) == (again, not again)
    assert "None assigned" not in (submission.request(run_id, attempt + 1).shape.exclude)


def test_a_job_after_the_loss_of_a_node_leaves_out_what_slurm_can_spare(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = submission.runs
    lost = replace(JOB, state="NODE_FAIL", node_list="node[2-3]")
    assert "without node2, node3 (job 2" in judge(submission, run_id, 1, lost)[1]
    assert submission.request(run_id, 2).shape.exclude == "node[2-3]"
    # The next call knows it, as long as Slurm takes the request.
    later = Submission(submission.campaign, submission.states, submission.runs)
    assert later.request(run_id, 1).shape.exclude == "node[2-3]"
    why = "Requested node configuration is not available"
    monkeypatch.setattr(commands, "refusal", lambda words, *_, **more: why)
    later = Submission(submission.campaign, submission.states, submission.runs)
    assert later.request(run_id, 1).shape.exclude == ""
    assert judge(later, run_id, 1, lost)[1].endswith("trying again (job 2 of 3)")


def test_a_job_is_submitted_until_slurm_has_it_and_never_twice(
    submission: Submission, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (run_id,) = submission.runs
    full = "sbatch: error: QOSMaxSubmitJobLimit\nsbatch: error: Job violates a policy"
    answers = [(7, ""), (None, full), (None, full), (8, ""), (None, full), (None, "error: No such")]
    queue = [LiveJob(7, "COMPLETING", submission.name, run_id)]
    cancelled: list[str] = []
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(commands, "sbatch", lambda *_: answers.pop(0))
    monkeypatch.setattr(commands, "live_jobs", lambda *_: queue)
    monkeypatch.setattr(commands, "ask", lambda *words: cancelled.extend(words[2:]))
    ids = [submission.submit(Stub(run_id), "launch") for _ in range(2)]
    assert ids == [(7, ""), (8, "")] and caplog.text.count("Job violates a policy; submitting") == 1
    # Slurm has taken it without saying so.
    queue.append(LiveJob(9, "PENDING", submission.name, run_id))
    assert submission.submit(Stub(run_id), "launch") == (9, "")
    assert submission.submit(Stub(run_id), "launch") == (None, "No such")
    queue.append(LiveJob(10, "PENDING", submission.name, "of an earlier call"))
    submission.call_off([11], left=False)  # a queue may leave out what it has taken
    assert cancelled == ["11", "7", "9"]


def test_a_shape_is_refused_and_not_the_campaign(
    submission: Submission, campaign_of: Callable[..., Campaign], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    campaign = campaign_of("axes: {ranks: [1, 2]}\nfixed: {ranks_per_node: 1}\nrepeats: 2")
    runs = campaign.unique_runs()
    found = Submission(campaign, dict.fromkeys(runs, RunState(Status.NEW)), runs)
    monkeypatch.setattr(commands, "check_commands", lambda: None)
    monkeypatch.setattr(
        commands, "refusal",
        lambda words, *_, **more: "no such nodes" if "--nodes=2" in words else None,
    )  # fmt: skip
    found.check(runs)
    large = {run_id for run_id, (_, run) in runs.items() if run.point["ranks"] == 2}
    assert set(found.refused) == large and len(large) == 2
    assert "2 runs: not submitted: " in caplog.text and "no such nodes" in caplog.text
    monkeypatch.setattr(commands, "refusal", lambda words, *_, **more: "no account")
    with pytest.raises(UserError, match="no account"):
        found.check(runs)


def test_what_ended_while_no_snakemake_was_there_is_settled(
    submission: Submission, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = submission.runs
    folder = submission.campaign.runs_folder / run_id
    books = {n: replace(JOB, job_id=n) for n in (12, 14)}
    monkeypatch.setattr(sacct, "query", lambda ids: {n: books[n] for n in ids if n in books})
    assert not submission.settle_past()  # no job has begun
    logs = submission.logs / run_id
    logs.mkdir(parents=True)
    for job_id in (12, 14):
        (logs / f"{job_id}.log").touch()
    assert submission.settle_past()
    assert (read_failure(folder) or {})["job_id"] == 14
    assert not submission.settle_past()  # it is known
    # What was cancelled has not failed.
    (logs / "16.log").touch()
    books[16] = replace(JOB, job_id=16, state="CANCELLED")
    assert submission.settle_past() and (read_failure(folder) or {})["job_id"] == 14
