"""Launch the runs of a pack, each as if it were alone.

A process is forked for each run, which launches it as any run is launched: with its own deadline,
lock, record or failure, log and marker. Whatever comes of that process, the next run begins; if it
leaves no word, the failure is written here. A run begins only while its whole time limit is left of
the job's, so that a run that has taken longer than expected shortens no other: what does not begin
is submitted again.

Runs follow each other, or, where each says how many nodes it takes, begin in their order as soon as
so many nodes of the job are free: none overtakes another one, and no two share a node.

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
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from scalesweep.compute.job_spec import CACHED_S, JOB_FILE, ORDER, read_order
from scalesweep.compute.left_out import left_out
from scalesweep.compute.pack import (
    LAUNCHER_LOG,
    Pack,
    PackedRun,
    begun,
    ended_in,
    pack_file,
    read_pack,
)
from scalesweep.compute.standstill import BEAT_S, AwakeClock
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import read_json, stamp_of, write_atomic
from scalesweep.core.host_list import expand
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import FAILURE, FAILURE_SCHEMA, RECORD, last_lines

_POLL_S = 0.2
# Launches the run whose order is at this path and has this digest, on these nodes of the job (all
# of them where none is named); returns the exit code.
Launch = Callable[[Path, str, Sequence[str]], int]


class _Begun(NamedTuple):
    """A run that is being measured, and what is known of its launcher's process."""

    run: PackedRun
    hosts: Sequence[str]
    began: datetime
    last: float  # when the launcher is killed, by the clock of all
    before: tuple[str | None, str | None]  # ``_word``
    ended: int | None  # readable once it has ended; None on Linux before 5.3


def run_pack(path: Path, launch: Launch) -> None:
    """Launch the runs of the pack that ``path`` describes, as far as its time allows.

    ``launch`` is called in a process of its own for each of them. Called off (SIGTERM), it ends
    what it has begun before it exits. Raises UserError if there is no such pack, or the job's nodes
    are needed and not known.
    """
    awake = AwakeClock()
    since = awake.now()
    pack = _await_pack(path.parents[1], path.stem)
    hosts = _hosts() if any("nodes" in run for run in pack["runs"]) else []
    awake.beat()
    with _called_off() as at_work, awake.noting_continues():
        _Launcher(path, pack, launch, hosts, since, at_work, awake).run()


@dataclass
class _Launcher:
    """What is left of a pack to be launched."""

    path: Path
    pack: Pack
    launch: Launch
    hosts: Sequence[str]  # nodes of the job, where runs have some each
    since: float
    at_work: dict[int, _Begun]  # by the id of the process that launches a run
    awake: AwakeClock
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

    def run(self) -> None:
        """Launch what can be launched."""
        # Of this job, before Slurm requeued it.
        earlier = set(begun(self.runs, self.path.stem))
        to_come = deque(self.pack["runs"])
        while to_come or self.at_work:
            if to_come and (hosts := self._room(to_come[0])) is not None:
                run = to_come.popleft()
                if why := self._why_not(run, earlier):
                    print(f"{run['run_id']}: {why}", flush=True)
                else:
                    self._begin(run, hosts)
            else:
                self._await_end()

    def _room(self, run: PackedRun) -> Sequence[str] | None:
        """The nodes on which a run may begin now, empty for all; None while there is no room."""
        if "nodes" not in run:
            return None if self.at_work else ()
        busy = {host for child in self.at_work.values() for host in child.hosts}
        free = [host for host in self.hosts if host not in busy]
        return free[: run["nodes"]] if len(free) >= run["nodes"] or not busy else None

    def _why_not(self, run: PackedRun, earlier: Collection[str]) -> str:
        """Why a run does not begin; empty if it does."""
        run_id = run["run_id"]
        if run_id in left_out(self.runs):
            return "left out: enough runs like it have failed in the same way"
        if run_id in earlier and self.job and ended_in(self.runs / run_id, self.job):
            return "has failed before this job was requeued"
        if run.get("group") in self.failed:
            return "left out, because an earlier run of its point has failed"
        if self.first or self.pack["given_s"] is None:
            return ""
        left_s = self.pack["given_s"] - self.pack["spare_s"] - (self.awake.now() - self.since)
        if run["needs_s"] > left_s:
            return f"needs {run['needs_s']:g} s, {left_s:.0f} s are left: not begun"
        return ""

    def _begin(self, run: PackedRun, hosts: Sequence[str]) -> None:
        """Launch a run in a process of its own, which prints to the run's log."""
        self.first = False
        line = f"{run['run_id']} {','.join(hosts)}".rstrip()
        with contextlib.suppress(OSError), self.path.with_suffix(".begun").open("a") as file:
            file.write(f"{line}\n")
        folder, began = self.runs / run["run_id"], datetime.now(UTC)
        before, last = _word(folder), self.awake.now() + self._patience_s(run)
        sys.stdout.flush()
        sys.stderr.flush()
        # Called off between the two, the child would take this process's way out.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            pid = os.fork()
            if pid == 0:
                _child(partial(self.launch, folder / ORDER, run["order"], hosts), folder)
            self.at_work[pid] = _Begun(run, hosts, began, last, before, _end_of(pid))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _patience_s(self, run: PackedRun) -> float:
        """Seconds after which a launcher is killed that is not over in spite of its deadline."""
        return run["needs_s"] + self.pack["spare_s"]

    def _await_end(self) -> None:
        """Wait until a launcher has ended or must be; see to it that each has left its word."""
        ends = [child.ended for child in self.at_work.values() if child.ended is not None]
        left_s = min(min(child.last for child in self.at_work.values()) - self.awake.now(), BEAT_S)
        if len(ends) < len(self.at_work):
            left_s = min(left_s, _POLL_S)
        select.select(ends, [], [], max(left_s, 0.0))
        self.awake.beat()
        for pid, child in list(self.at_work.items()):
            late = self.awake.now() >= child.last
            if late:
                os.kill(pid, signal.SIGKILL)
            over, status = os.waitpid(pid, 0 if late else os.WNOHANG)
            if over:
                del self.at_work[pid]
                if child.ended is not None:
                    os.close(child.ended)
                code = os.waitstatus_to_exitcode(status)
                self._close(child, late and code == -signal.SIGKILL, code)

    def _close(self, child: _Begun, late: bool, code: int) -> None:
        """Note how a launcher has ended: its exit code, or minus the signal that ended it."""
        run, folder = child.run, self.runs / child.run["run_id"]
        why = f"the launcher ended with exit code {code}" if code else ""
        if late:
            why = f"the launcher was not over after {self._patience_s(run):g} s and was killed"
        elif code < 0:
            why = f"the launcher was ended by {signal.Signals(-code).name}"
        print(f"{run['run_id']}: {why or 'done'}", flush=True)
        if why and _word(folder) == child.before:
            self._leave_failure(folder, why, child.began)
        if why and "group" in run and _word(folder)[0] == child.before[0]:
            self.failed.add(run["group"])

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
                "schema": FAILURE_SCHEMA, "run_id": folder.name, "cause": Cause.KILLED,
                "detail": f"{why} before it wrote a result", "exit_code": None, "signal": None,
                "attempt": _attempts(folder), "started": began.isoformat(timespec="milliseconds"),
                "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "last_lines": last_lines(folder / LAUNCHER_LOG),
                **({} if self.job is None else {"job_id": self.job, "asked": asked}),
            }  # fmt: skip
            write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


@contextlib.contextmanager
def _called_off() -> Iterator[dict[int, _Begun]]:
    """Processes (by their ids) that are called off as soon as this one is (SIGTERM), and waited
    for."""

    def leave(number: int, _frame: Any) -> NoReturn:
        sys.exit(128 + number)

    processes: dict[int, _Begun] = {}
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield processes
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in processes:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        signal.signal(signal.SIGTERM, before)


def _hosts() -> list[str]:
    """Names of the job's nodes, in their order. Raises UserError."""
    if hosts := expand(os.environ.get("SLURM_JOB_NODELIST", "")):
        return list(hosts)
    raise UserError("cannot name the nodes of this job: SLURM_JOB_NODELIST is not set")


def _await_pack(runs: Path, name: str) -> Pack:
    """The pack, which a network file system may show some seconds late."""
    last = time.monotonic() + CACHED_S
    while (pack := read_pack(runs, name)) is None:
        if time.monotonic() >= last:
            raise UserError(f"{pack_file(runs, name)}: cannot read the runs of this job")
        time.sleep(_POLL_S)
    return pack


def _child(work: Callable[[], int], folder: Path) -> NoReturn:
    """Do ``work`` for the run in ``folder`` and exit with what it returns."""
    code = 1
    try:
        end_with_parent()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        out = os.open(folder / LAUNCHER_LOG, flags, 0o666)
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


def _end_of(pid: int) -> int | None:
    """What can be waited for until a child of this process ends; None on Linux before 5.3."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _word(folder: Path) -> tuple[str | None, str | None]:
    """What changes once a launcher has left a record or a failure."""
    return stamp_of(str(folder / RECORD)), stamp_of(str(folder / FAILURE))


def _attempts(folder: Path) -> int:
    """Number of a run's last attempt, 0 if there is none."""
    numbers = [path.name.partition("-")[2] for path in folder.glob("attempt-*")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
