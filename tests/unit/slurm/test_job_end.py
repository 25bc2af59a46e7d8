"""Which jobs are over, by queue and accounting, each of which may be wrong alone; and the last word
on their runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.record import read_failure
from scalesweep.core.status import Status
from scalesweep.slurm import commands, sacct
from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.job_end import JobWatch, settle, why_pending
from scalesweep.slurm.sacct import FINAL, Job
from scalesweep.state.run_state import scan
from tests.fakes.slurm_jobs import ASKED, JOB, TIMEOUT, by_launcher

LIVE = (
    *("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"),
    *("RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"),
)
RUNNING = replace(JOB, state="RUNNING")


class Slurm:
    """What queue and accounting say; None: they do not answer."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.queue: dict[int, str] | None = {}
        self.books: dict[int, Job] = {}
        self.now = 0.0
        self.watch = JobWatch()
        patch.setattr(commands, "queue_states", self.squeue)
        patch.setattr(sacct, "query", self.sacct)
        patch.setattr("time.monotonic", lambda: self.now)

    def squeue(self) -> dict[int, LiveJob]:
        if self.queue is None:
            raise UserError("squeue: Unable to contact slurm controller (connect failure)")
        return {job: LiveJob(job, state) for job, state in self.queue.items()}

    def sacct(self, job_ids: Sequence[int]) -> dict[int, Job]:
        return {job: self.books[job] for job in job_ids if job in self.books}

    def state(self, after_s: float = 0.0) -> str | None:
        """The state in which job 12 is over; None while it is not."""
        self.now += after_s
        job = self.watch.ended([12]).get(12)
        return None if job is None else job.state


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Slurm:
    return Slurm(monkeypatch)


def of_sacct(state: str) -> Job:
    """Job 12 as it is read of a line that sacct prints."""
    row = dict.fromkeys(sacct.FIELDS, "") | {"JobIDRaw": "12", "State": state, "Partition": "main"}
    return sacct.parse("|".join(row.values()))[12]


@pytest.mark.parametrize("said", [*FINAL, "CANCELLED by 0", "CANCELLED by 1000", "CANCELLED+"])
def test_every_state_that_ends_a_job_ends_the_wait(slurm: Slurm, said: str) -> None:
    slurm.books, state = {12: of_sacct(said)}, said.split(maxsplit=1)[0].rstrip("+")
    assert slurm.state() == state
    slurm.queue = {12: state}  # which may still have it, for minutes
    assert slurm.state() == state


@pytest.mark.parametrize("state", LIVE)
def test_a_job_in_the_queue_lives_whatever_the_accounting_says(slurm: Slurm, state: str) -> None:
    slurm.queue = {12: state}
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
        # A node may take its time to be rid of a job, or never be.
        ("COMPLETING", replace(JOB, state="NODE_FAIL"), [0, 60, 61], "NODE_FAIL"),
    ],
)
def test_what_is_waited_for_and_how_long(
    slurm: Slurm, queue: str, books: Job | None, waits: list[float], state: str
) -> None:
    slurm.queue = {12: queue} if queue else {}
    slurm.books = {12: books} if books else {}
    assert [slurm.state(wait) for wait in waits] == [None] * (len(waits) - 1) + [state]


def test_without_an_answer_nothing_is_over(slurm: Slurm, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    slurm.queue, slurm.books = None, {12: JOB}
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
def test_why_jobs_wait(monkeypatch: pytest.MonkeyPatch, reasons: Sequence[str], said: str) -> None:
    monkeypatch.delenv("SCALESWEEP_HEAD_JOB", raising=False)
    jobs = [LiveJob(n, "PENDING", reason=text) for n, text in enumerate(reasons)]
    assert why_pending([*jobs, LiveJob(99, "RUNNING")]) == said
    monkeypatch.setenv("SCALESWEEP_HEAD_JOB", "17")  # which holds nodes itself
    assert ("job 17, which this call runs in" in why_pending(jobs)) == ("Resources" in reasons)


@pytest.mark.parametrize(
    ("job", "more"),
    [
        (JOB, {"cause": "NON_ZERO_EXIT"}),
        (TIMEOUT, {"cause": "TIMEOUT", "detail": "job 12 reached its limit of 60 min"}),
    ],
)
def test_the_launchers_word_stands_unless_slurm_knows_better(
    tmp_path: Path, job: Job, more: dict[str, str]
) -> None:
    failure = by_launcher(tmp_path)
    assert settle(tmp_path, job, ASKED) == more["cause"]
    assert read_failure(tmp_path) == {**failure, **more, "asked": ASKED, "nodes": "node[1-2]"}


@pytest.mark.parametrize(
    "old",
    [
        {},
        {"job_id": 11},
        {"job_id": None},
        # The same job, before Slurm requeued it.
        {"ended": "2026-03-01T07:59:00+00:00"},
    ],
)
def test_a_killed_launcher_is_spoken_for(tmp_path: Path, old: dict[str, Any]) -> None:
    folder = tmp_path / "a"
    if old:
        by_launcher(folder, **old)
    log = tmp_path / "12.log"
    log.write_text("first\n\n" + "line\n@spans 8 {}\n" * 30 + "slurmstepd: error\n")
    killed = replace(JOB, exit_code=0, signal=9)
    for _ in range(2):  # doing it again changes nothing
        assert settle(folder, killed, ASKED, log) == "KILLED"
        found = read_failure(folder) or {}
        assert found["detail"] == (
            "Slurm job 12 ended (FAILED, exit code 0, signal 9) before the launcher wrote a result"
        )
        assert (found["job_id"], found["attempt"]) == (12, 0)
        assert (found["exit_code"], found["signal"]) == (None, 9)
        assert (found["asked"], found["nodes"]) == (ASKED, "node[1-2]")
        assert found["last_lines"] == [*["line"] * 19, "slurmstepd: error"]
    state = scan(tmp_path, ["a"])["a"]
    assert (state.status, state.cause, state.detail) == (Status.FAILED, "KILLED", found["detail"])
    # The accounting is complete a moment later.
    assert settle(folder, TIMEOUT, ASKED) == "TIMEOUT"
