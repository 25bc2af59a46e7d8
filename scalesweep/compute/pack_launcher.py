"""Launch the runs of a pack one after the other, each as if it were alone.

A process is forked for each run, which launches it as any run is launched: with its own deadline,
lock, record or failure, log and marker. Whatever comes of that process, the next run begins; if it
leaves no word, the failure is written here. A run begins only while its whole time limit is left of
the job's, so that a run that has taken longer than expected shortens no other: what does not begin
is submitted again.

Standard library only, as all that runs in a job.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from scalesweep.compute.job_spec import CACHED_S, JOB_FILE, ORDER, read_order
from scalesweep.compute.pack import (
    LAUNCHER_LOG,
    Pack,
    PackedRun,
    begun,
    ended_in,
    pack_file,
    read_pack,
)
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_json, stamp_of, write_atomic
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import FAILURE, FAILURE_SCHEMA, RECORD, last_lines

_POLL_S = 0.2
# A launcher's exit code, or minus the signal that ended it; None: killed here, after its time.
Status = int | None
# Launches the run whose order is at this path and has this digest; returns the exit code.
Launch = Callable[[Path, str], int]


def run_pack(path: Path, launch: Launch) -> None:
    """Launch the runs of the pack that ``path`` describes, as far as its time allows.

    ``launch`` is called in a process of its own for each of them. Called off (SIGTERM), it ends
    what it has begun before it exits. Raises UserError if there is no such pack.
    """
    since = time.monotonic()
    pack = _await_pack(path.parents[1], path.stem)
    with _called_off() as children:
        _Launcher(path, pack, launch, since, children).run()


@dataclass
class _Launcher:
    """What is left of a pack to be launched."""

    path: Path
    pack: Pack
    launch: Launch
    since: float
    children: set[int]  # processes that launch a run
    first: bool = True
    failed: set[str] = field(default_factory=set)  # groups of which a run has failed

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.path.parents[1]

    @cached_property
    def job(self) -> int | None:
        """Id of the Slurm job; None outside of one."""
        job = os.environ.get("SLURM_JOB_ID", "")
        return int(job) if job.isdecimal() else None

    @cached_property
    def earlier(self) -> set[str]:
        """Runs that this job had begun before Slurm requeued it."""
        return set(begun(self.runs, self.path.stem))

    def run(self) -> None:
        """Launch what can be launched."""
        _ = self.earlier
        for run in self.pack["runs"]:
            if self.path.with_suffix(".stop").exists():
                print("called off: no further run begins", flush=True)
                return
            if why := self._why_not(run):
                print(f"{run['run_id']}: {why}", flush=True)
            else:
                self._measure(run)

    def _why_not(self, run: PackedRun) -> str:
        """Why a run does not begin; empty if it does."""
        run_id = run["run_id"]
        if run_id in self.earlier and self.job and ended_in(self.runs / run_id, self.job):
            return "has failed before this job was requeued"
        if run.get("group") in self.failed:
            return "left out, because an earlier run of its point has failed"
        if self.first or self.pack["given_s"] is None:
            return ""
        left_s = self.pack["given_s"] - self.pack["spare_s"] - (time.monotonic() - self.since)
        if run["needs_s"] > left_s:
            return f"needs {run['needs_s']:g} s, {left_s:.0f} s are left: not begun"
        return ""

    def _measure(self, run: PackedRun) -> None:
        """Launch a run, and see to it that it has left a record or a failure."""
        self.first = False
        with contextlib.suppress(OSError), self.path.with_suffix(".begun").open("a") as file:
            file.write(f"{run['run_id']}\n")
        folder, began = self.runs / run["run_id"], datetime.now(UTC)
        before = _word(folder)
        patience_s = run["needs_s"] + self.pack["spare_s"]
        status = self._apart(run, folder / LAUNCHER_LOG, patience_s)
        ended = _told(status, patience_s)
        print(f"{run['run_id']}: {ended or 'done'}", flush=True)
        if ended and _word(folder) == before:
            self._leave_failure(folder, ended, began)
        if ended and "group" in run and _word(folder)[0] == before[0]:
            self.failed.add(run["group"])

    def _apart(self, run: PackedRun, log: Path, patience_s: float) -> Status:
        """Launch a run in a process of its own that prints to ``log``.

        A process that is not over after ``patience_s``, in spite of the run's own deadline, is
        killed.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        # Called off between the two, the child would take this process's way out.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
            if pid == 0:
                _child(lambda: self.launch(self.runs / run["run_id"] / ORDER, run["order"]), log)
            self.children.add(pid)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        late = not _over_within(pid, patience_s)
        if late:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.children.discard(pid)
        return None if late else status

    def _leave_failure(self, folder: Path, why: str, began: datetime) -> None:
        """Write the failure of a run whose launcher has left no word.

        Not where the run is another job's by now.
        """
        jobs = (read_json(folder / JOB_FILE) or {}).get("jobs") or [{}]
        if jobs[-1].get("job_id") not in (None, self.job):
            return
        with contextlib.suppress(OSError, UserError):  # a full disk: the end of the job has to tell
            asked = read_order(folder / ORDER)["asked"]
            failure = {
                "schema": FAILURE_SCHEMA, "run_id": folder.name, "cause": "KILLED",
                "detail": f"{why} before it wrote a result", "exit_code": None, "signal": None,
                "attempt": _attempts(folder), "started": began.isoformat(timespec="milliseconds"),
                "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "last_lines": last_lines(folder / LAUNCHER_LOG),
                **({} if self.job is None else {"job_id": self.job, "asked": asked}),
            }  # fmt: skip
            write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


@contextlib.contextmanager
def _called_off() -> Iterator[set[int]]:
    """Processes that are called off as soon as this one is (SIGTERM), and waited for."""

    def leave(number: int, _frame: Any) -> NoReturn:
        sys.exit(128 + number)

    children: set[int] = set()
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield children
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        signal.signal(signal.SIGTERM, before)


def _await_pack(runs: Path, name: str) -> Pack:
    """The pack, which a network file system may show some seconds late."""
    last = time.monotonic() + CACHED_S
    while (pack := read_pack(runs, name)) is None:
        if time.monotonic() >= last:
            raise UserError(f"{pack_file(runs, name)}: cannot read the runs of this job")
        time.sleep(_POLL_S)
    return pack


def _child(work: Callable[[], int], log: Path) -> NoReturn:
    """Do ``work`` and exit with what it returns."""
    code = 1
    try:
        end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = work()
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except (UserError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _over_within(pid: int, limit_s: float) -> bool:
    """Whether a child of this process ends in time; it is left to be waited for."""
    try:
        ended = os.pidfd_open(pid)
    except OSError:  # Linux before 5.3: then the run's own deadline has to do
        return True
    try:
        return bool(select.select([ended], [], [], limit_s)[0])
    finally:
        os.close(ended)


def _told(status: Status, patience_s: float) -> str:
    """How a launcher has failed; empty if it has not."""
    if status is None:
        return f"the launcher was not over after {patience_s:g} s and was killed"
    if status < 0:
        return f"the launcher was ended by {signal.Signals(-status).name}"
    return f"the launcher ended with exit code {status}" if status else ""


def _word(folder: Path) -> tuple[str | None, str | None]:
    """What changes once a launcher has left a record or a failure."""
    return stamp_of(str(folder / RECORD)), stamp_of(str(folder / FAILURE))


def _attempts(folder: Path) -> int:
    """Number of a run's last attempt, 0 if there is none."""
    numbers = [path.name.partition("-")[2] for path in folder.glob("attempt-*")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
