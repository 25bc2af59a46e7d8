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
RUNNING, LOST = replace(JOB, state="RUNNING"), replace(JOB, state="NODE_FAIL")


class Slurm:
    """What queue and accounting say; None: they do not answer."""

    def __init__(self, queue: str | None = "", books: Job | None = None) -> None:
        self.queue: dict[int, str] | None = None if queue is None else {12: queue} if queue else {}
        self.books: dict[int, Job] | None = {} if books is None else {12: books}
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


def of_sacct(state: str) -> Job:
    """Job 12 as it is read of a line that sacct prints."""
    row = dict.fromkeys(sacct.FIELDS, "") | {"JobIDRaw": "12", "State": state, "Partition": "main"}
    return sacct.parse("|".join(row.values()))[12]


@pytest.mark.parametrize("said", [*FINAL, "CANCELLED by 0", "CANCELLED by 1000", "CANCELLED+"])
def test_every_state_that_ends_a_job_ends_the_wait(said: str) -> None:
    slurm, state = Slurm(books=of_sacct(said)), said.split(maxsplit=1)[0].rstrip("+")
    assert slurm.state() == state
    slurm.queue = {12: state}  # which may still have it, for minutes
    assert slurm.state() == state


@pytest.mark.parametrize("state", LIVE)
def test_a_job_in_the_queue_lives_whatever_the_accounting_says(state: str) -> None:
    slurm = Slurm(state)
    for ended in (None, of_sacct("NODE_FAIL"), of_sacct("PREEMPTED")):  # requeued
        slurm.books = {} if ended is None else {12: ended}
        assert slurm.state(1000) is None


@pytest.mark.parametrize(
    ("queue", "books", "waits", "state"),
    [
        # The accounting may lag behind, but not for ever: then the queue's word counts.
        ("TIMEOUT", RUNNING, [0, 5, 6], "TIMEOUT"),
        # Its steps are not all there yet: a cause may hang on them.
        ("", replace(JOB, steps_end=False), [0, 11], "FAILED"),
        # Purged, or RUNNING in the books of a slurmctld that lost it.
        ("", None, [0, 50, 11], sacct.GONE),
        ("", RUNNING, [0, 50, 11], sacct.GONE),
        # A node may take its time to be rid of a job.
        ("COMPLETING", LOST, [0, 60, 61], "NODE_FAIL"),
    ],
)
def test_what_is_waited_for_and_how_long(
    queue: str, books: Job | None, waits: list[float], state: str
) -> None:
    slurm = Slurm(queue, books)
    assert [slurm.state(wait) for wait in waits] == [None] * (len(waits) - 1) + [state]


def test_while_slurm_does_not_answer_nothing_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    slurm = Slurm(None, JOB)
    assert [slurm.state(10) for _ in range(100)] == [None] * 100
    (said,) = caplog.messages
    assert said.startswith("Slurm does not answer (squeue: Unable to contact")
    slurm.queue = {}
    assert slurm.state(1) == "FAILED"


MANY = "Priority", "Resources", "Resources", "ReqNodeNotAvail, UnavailableNodes:n3"


@pytest.mark.parametrize(
    ("reasons", "said"),
    [
        (MANY, "4 jobs are pending: 2 Resources (waits for free nodes), 1 Priority (other jobs "
         "come first), 1 ReqNodeNotAvail, UnavailableNodes:n3 (a node it needs is down, drained "
         "or reserved)"),
        ((), ""),
        (("None",), ""),
        (("QOSMaxJobsPerUserLimit",), "1 job is pending: 1 QOSMaxJobsPerUserLimit"),
        *(((why,), f"1 job is pending: 1 {why} (will never start as it is: scancel it, and ask "
           "for less)")
          for why in ("AssocMaxWallDurationPerJobLimit", "PartitionTimeLimit")),
    ],
)  # fmt: skip
def test_why_jobs_are_pending(
    monkeypatch: pytest.MonkeyPatch, reasons: Sequence[str], said: str
) -> None:
    monkeypatch.delenv("SCALESWEEP_HEAD_JOB", raising=False)
    jobs = [LiveJob(n, "PENDING", reason=text) for n, text in enumerate(reasons)]
    assert why_pending([*jobs, LiveJob(99, "RUNNING")]) == said
    monkeypatch.setenv("SCALESWEEP_HEAD_JOB", "17")  # which holds nodes itself
    assert ("job 17, which this call runs in" in why_pending(jobs)) == ("Resources" in reasons)
