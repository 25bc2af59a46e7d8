"""Which jobs are over: queue and accounting together, each of which may be wrong alone."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import sacct
from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.job_watch import JobWatch, why_pending
from scalesweep.slurm.sacct import FINAL, Job
from tests.fakes.slurm_jobs import JOB

LIVE = (
    *("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"),
    *("RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"),
)


class Slurm:
    """What queue and accounting say; None: they do not answer."""

    def __init__(self) -> None:
        self.queue: dict[int, str] | None = {}
        self.books: dict[int, Job] | None = {}
        self.now = 0.0
        self.watch = JobWatch(self.squeue, self.sacct, lambda: self.now)

    def squeue(self) -> dict[int, LiveJob]:
        if self.queue is None:
            raise UserError("squeue: Unable to contact slurm controller (connect failure)")
        return {job: LiveJob(job, state) for job, state in self.queue.items()}

    def sacct(self, job_ids: Sequence[int]) -> dict[int, Job]:
        if self.books is None:
            raise UserError("sacct: Slurm accounting storage is disabled")
        return {job: self.books[job] for job in job_ids if job in self.books}

    def state(self, after_s: float = 0.0) -> str | None:
        """The state in which job 12 is over; None while it is not."""
        self.now += after_s
        job = self.watch.ended([12]).get(12)
        return None if job is None else job.state


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


def of_sacct(state: str) -> Job:
    """Job 12 as it is read of a line that sacct prints."""
    row = dict.fromkeys(sacct.FIELDS, "") | {"JobIDRaw": "12", "State": state, "Partition": "main"}
    return sacct.parse("|".join(row.values()))[12]


@pytest.mark.parametrize("said", [*FINAL, "CANCELLED by 0", "CANCELLED by 1000", "CANCELLED+"])
def test_every_state_that_ends_a_job_ends_the_wait(slurm: Slurm, said: str) -> None:
    slurm.books = {12: of_sacct(said)}
    assert slurm.state() == said.split(maxsplit=1)[0].rstrip("+")
    # The queue may still have it, for minutes.
    slurm.queue = {12: said.split(maxsplit=1)[0].rstrip("+")}
    assert slurm.state() == said.split(maxsplit=1)[0].rstrip("+")


@pytest.mark.parametrize("state", LIVE)
def test_a_job_in_the_queue_lives_whatever_the_accounting_says(slurm: Slurm, state: str) -> None:
    slurm.queue = {12: state}
    for ended in (None, of_sacct("NODE_FAIL"), of_sacct("PREEMPTED")):  # requeued
        slurm.books = {} if ended is None else {12: ended}
        assert slurm.state(1000) is None


def test_the_accounting_may_lag_behind_but_not_for_ever(slurm: Slurm) -> None:
    running = replace(JOB, state="RUNNING")
    slurm.queue, slurm.books = {12: "TIMEOUT"}, {12: running}
    assert slurm.state() is None and slurm.state(5) is None
    assert slurm.state(6) == "TIMEOUT"  # the queue's word
    # Its steps are not all there yet: a cause may hang on them.
    other = Slurm()
    other.books = {12: replace(JOB, steps_end=False)}
    assert other.state() is None and other.state(11) == "FAILED"


def test_a_job_that_is_gone_from_both_is_over(slurm: Slurm) -> None:
    # Purged, or RUNNING in the books of a slurmctld that lost it.
    for books in ({}, {12: replace(JOB, state="RUNNING")}):
        slurm = Slurm()
        slurm.books = books
        assert slurm.state() is None and slurm.state(50) is None
        assert slurm.state(11) == sacct.GONE


def test_a_node_may_take_its_time_to_be_rid_of_a_job(slurm: Slurm) -> None:
    slurm.queue, slurm.books = {12: "COMPLETING"}, {12: replace(JOB, state="NODE_FAIL")}
    assert slurm.state() is None and slurm.state(60) is None
    slurm.queue = {12: "PENDING"}  # requeued meanwhile
    assert slurm.state(1) is None
    slurm.queue = {12: "COMPLETING"}
    assert slurm.state(1) is None and slurm.state(121) == "NODE_FAIL"


def test_without_an_accounting_the_queue_must_do(slurm: Slurm) -> None:
    slurm.books, slurm.queue = None, {12: "RUNNING"}
    assert slurm.state() is None
    slurm.queue = {12: "COMPLETED"}
    assert slurm.state(1) == "COMPLETED"


def test_while_slurm_does_not_answer_nothing_is_over(
    slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    slurm.queue, slurm.books = None, {12: JOB}
    for _ in range(100):
        assert slurm.state(10) is None
    (said,) = caplog.messages
    assert said.startswith("Slurm does not answer (squeue: Unable to contact")
    slurm.queue = {}
    assert slurm.state(1) == "FAILED"


def pending(*reasons: str) -> str:
    return why_pending(LiveJob(n, "PENDING", reason=text) for n, text in enumerate(reasons))


def test_why_jobs_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCALESWEEP_HEAD_JOB", raising=False)
    reasons = ["Priority", "Resources", "Resources", "ReqNodeNotAvail, UnavailableNodes:n3"]
    assert pending(*reasons) == (
        "4 jobs are pending: 2 Resources (waits for free nodes), 1 Priority (other jobs come "
        "first), 1 ReqNodeNotAvail, UnavailableNodes:n3 (a node it needs is down, drained or "
        "reserved)"
    )
    assert pending() == pending("None") == why_pending([LiveJob(7, "RUNNING")]) == ""
    assert pending("QOSMaxJobsPerUserLimit") == "1 job is pending: 1 QOSMaxJobsPerUserLimit"


@pytest.mark.parametrize(
    "reason", ["AssocMaxWallDurationPerJobLimit", "PartitionTimeLimit", "QOSMaxCpuPerJobLimit"]
)
def test_what_can_never_start_is_told_from_what_waits(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "(will never start as it is: scancel it" in pending(reason)
    monkeypatch.setenv("SCALESWEEP_HEAD_JOB", "17")
    assert "never" not in pending("Resources")
    assert "(waits for free nodes; job 17, which this call runs in" in pending("Resources")


def test_the_accounting_is_asked_of_what_is_to_be_explained_only() -> None:
    asked: list[Sequence[int]] = []
    queue = {7: LiveJob(7, "RUNNING"), 8: LiveJob(8, "SUSPENDED")}

    def books(job_ids: Sequence[int]) -> dict[int, Job]:
        asked.append(list(job_ids))
        return {i: replace(JOB, job_id=i, state="COMPLETED", suspended_s=39) for i in job_ids}

    watch = JobWatch(lambda: queue, books, lambda: 0.0)
    assert watch.ended([7, 8]) == {} and asked == []
    queue = {i: LiveJob(i, "COMPLETED", nodes=f"n{i}") for i in (7, 8)}
    ended = watch.ended([7, 8])
    assert (ended[7].state, ended[7].node_list, ended[7].suspended_s) == ("COMPLETED", "n7", 0)
    # Only the accounting knows for how long the other one was suspended.
    assert ended[8].suspended_s == 39 and asked == [[8]]
