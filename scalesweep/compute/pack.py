"""A Slurm job of several short runs: one after the other, each as if the job were its own.

The job runs this launcher of launchers. It forks a process for each run, which launches it as any
run is launched: with its own deadline, lock, record or failure, log and marker. Whatever comes of
that process, the next run begins; if it leaves no word, the failure is written here. A run begins
only while its whole time limit is left of the job's, so that a run that has taken longer than
expected shortens no other: what does not begin is submitted again. In ``<name>.begun`` each run is
noted before it begins, by which it is known later which one a killed job was at work on.

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
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypedDict

from scalesweep.compute.job_spec import CACHED_S, JOB_FILE, ORDER, read_order
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, is_whole, read_json, sealed, write_atomic
from scalesweep.core.orphans import end_with_parent
from scalesweep.core.record import (
    FAILURE,
    FAILURE_SCHEMA,
    RECORD,
    last_lines,
    read_failure,
)

PACKS = ".packs"  # in the folder of a site's runs
LAUNCHER_LOG = "launcher.log"  # in a run's folder
_POLL_S = 0.2


class PackedRun(TypedDict):
    """A run of a pack: its id, the digest of its order, and the most seconds that it may take."""

    run_id: str
    order: str
    needs_s: float


class Pack(TypedDict):
    """Several runs of one job, in their order; the job has ``given_s`` seconds, of which
    ``spare_s`` are left to its start and end."""

    runs: list[PackedRun]
    given_s: float
    spare_s: float


def pack_file(runs: Path, name: str) -> Path:
    """Where a pack of that name is described, in the folder of a site's runs."""
    return runs / PACKS / f"{name}.json"


def write_pack(runs: Path, pack: Pack) -> str:
    """Leave a pack for its job; returns its name. Raises OSError."""
    name = digest_of([pack, time.time_ns(), os.getpid()], 6)
    path = pack_file(runs, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, sealed(pack), durable=False)
    return name


def read_pack(runs: Path, name: str) -> Pack | None:
    """The pack of that name; None if there is none that is whole."""
    try:
        content = pack_file(runs, name).read_bytes()
        pack: Pack = json.loads(content)
        whole = is_whole(content, needed=True) and {"runs", "given_s", "spare_s"} <= pack.keys()
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return pack if whole else None


def begun(runs: Path, name: str) -> list[str]:
    """Ids of the runs of a pack that its job has begun, in order; one twice if it was requeued."""
    try:
        return pack_file(runs, name).with_suffix(".begun").read_text().split()
    except (OSError, UnicodeDecodeError):
        return []


def was_begun(runs: Path, name: str, run_id: str) -> bool:
    """Whether the job of a pack, which has ended, has begun this run.

    Of a job that has begun none, for whatever reason, the first counts: so each such job costs one
    of them an attempt, and none is submitted for ever.
    """
    if began := begun(runs, name):
        return run_id in began
    pack = read_pack(runs, name)
    return pack is None or run_id == pack["runs"][0]["run_id"]


def call_off(runs: Path, name: str) -> None:
    """Have the job of a pack begin no further run. Raises OSError."""
    pack_file(runs, name).with_suffix(".stop").touch()


def ended_in(folder: Path, job_id: int) -> bool:
    """Whether a launcher has left the failure of a run, in this folder, in this Slurm job."""
    failure = read_failure(folder) or {}
    return str(failure.get("job_id")) == str(job_id) and "by_slurm" not in failure


def is_over(folder: Path, job_id: int) -> bool:
    """Whether a run has a failure or a record that was made in this Slurm job."""
    if ended_in(folder, job_id):
        return True
    resources = (read_json(folder / RECORD) or {}).get("resources")
    slurm = resources.get("slurm") if isinstance(resources, dict) else None
    return isinstance(slurm, dict) and str(slurm.get("job_id")) == str(job_id)


def run_pack(path: Path, launch: Callable[[Path, str], int]) -> None:
    """Launch the runs of the pack that ``path`` describes, as far as its time allows.

    ``launch`` is called in a process of its own, with the order of a run and that one's digest; it
    returns the exit code. Raises UserError if there is no such pack.
    """
    since = time.monotonic()
    runs, name = path.parents[1], path.stem
    pack = _await_pack(runs, name)
    job = os.environ.get("SLURM_JOB_ID", "")
    earlier = set(begun(runs, name))  # of a job that Slurm has requeued
    first = True
    for run in pack["runs"]:
        folder = runs / run["run_id"]
        if run["run_id"] in earlier and job.isdecimal() and ended_in(folder, int(job)):
            continue
        left_s = pack["given_s"] - pack["spare_s"] - (time.monotonic() - since)
        if path.with_suffix(".stop").exists():
            print("called off: no further run begins")
            return
        if not first and run["needs_s"] > left_s:
            print(
                f"{run['run_id']}: needs {run['needs_s']:g} s, {left_s:.0f} s are left: not begun"
            )
            continue
        first = False
        with contextlib.suppress(OSError), path.with_suffix(".begun").open("a") as file:
            file.write(f"{run['run_id']}\n")
        began = datetime.now(UTC)
        ended = _apart(
            partial(launch, folder / ORDER, run["order"]),
            folder / LAUNCHER_LOG,
            run["needs_s"] + pack["spare_s"],
        )
        print(f"{run['run_id']}: {ended or 'done'}", flush=True)
        if ended:
            _leave_failure(folder, job, ended, began)


def _await_pack(runs: Path, name: str) -> Pack:
    """The pack, which a network file system may show some seconds late."""
    last = time.monotonic() + CACHED_S
    while (pack := read_pack(runs, name)) is None:
        if time.monotonic() >= last:
            raise UserError(f"{pack_file(runs, name)}: cannot read the runs of this job")
        time.sleep(_POLL_S)
    return pack


def _apart(work: Callable[[], int], log: Path, patience_s: float) -> str:
    """Do ``work`` in a process of its own that prints to ``log``; how that failed, or nothing.

    A process that is not over after ``patience_s``, in spite of the run's own deadline, is killed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(work, log)
    late = not _over_within(pid, patience_s)
    if late:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if late:
        return f"the launcher was not over after {patience_s:g} s and was killed"
    if status < 0:
        return f"the launcher was ended by {signal.Signals(-status).name}"
    return f"the launcher ended with exit code {status}" if status else ""


def _child(work: Callable[[], int], log: Path) -> None:
    """Do ``work`` and exit with what it returns."""
    code = 1
    try:
        end_with_parent()
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


def _leave_failure(folder: Path, job: str, why: str, began: datetime) -> None:
    """See to it that a run whose launcher has failed has a failure of this job.

    Not where the launcher has left one, or the run is another job's by now.
    """
    if not job.isdecimal() or ended_in(folder, int(job)):
        return
    jobs = (read_json(folder / JOB_FILE) or {}).get("jobs") or [{}]
    if jobs[-1].get("job_id") not in (None, int(job)) or _recorded_since(folder, began):
        return
    with contextlib.suppress(OSError, UserError):  # a full disk: the end of the job has to tell
        failure = {
            "schema": FAILURE_SCHEMA, "run_id": folder.name, "cause": "KILLED",
            "detail": f"{why} before it wrote a result", "exit_code": None, "signal": None,
            "attempt": _attempts(folder), "started": began.isoformat(timespec="milliseconds"),
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "last_lines": last_lines(folder / LAUNCHER_LOG), "job_id": int(job),
            "asked": read_order(folder / ORDER)["asked"],
        }  # fmt: skip
        write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")


def _recorded_since(folder: Path, began: datetime) -> bool:
    """Whether a launcher was ended only after it had written the run's record."""
    try:
        return (folder / RECORD).stat().st_mtime >= began.timestamp()
    except OSError:
        return False


def _attempts(folder: Path) -> int:
    """Number of a run's last attempt, 0 if there is none."""
    numbers = [path.name.partition("-")[2] for path in folder.glob("attempt-*")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
