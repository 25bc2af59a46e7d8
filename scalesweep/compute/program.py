"""A program as a process group of its own: started, ended in time, and how it ended.

Standard library only, for the launcher.
"""

import contextlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from scalesweep.compute.job_spec import STREAMS, Order, Start
from scalesweep.core import profilers
from scalesweep.core.host import git_state, oom_kills
from scalesweep.core.orphans import MARK, end_orphans, end_with_parent, mark

GRACE_S = 5.0
STARTED = "SCALESWEEP_STARTED"  # variable: when the program was started, in Unix seconds
NOT_STARTED = 127
_LONGEST_S = 86_400.0  # of a wait at once: select takes no limit of a million years
# What no program gets of the environment that scalesweep itself was started in: threads, which
# Snakemake sets to the rule's in every shell job, and what another launcher tells a rank of its: a
# run of one rank would take itself for another, and ranks of srun for those of the other launcher.
_NOT_HANDED_ON = re.compile(
    "(OMP|GOTO|OPENBLAS|MKL|VECLIB|NUMEXPR)_NUM_THREADS"
    "|((LOCAL|GROUP|ROLE)_)?(RANK|WORLD_SIZE)|ROLE_NAME|TORCHELASTIC_.*|MV2_COMM_WORLD_.*"
    "|HOROVOD_(LOCAL_|CROSS_)?(RANK|SIZE)|OMPI_(COMM_WORLD|UNIVERSE)_.*|MPI_LOCAL(N?RANK(ID|S))"
    "|PMI_(RANK|SIZE|FD|ID)|PMIX_(RANK|NAMESPACE)|PALS_(RANKID|SIZE|LOCAL_RANKID|LOCAL_SIZE)"
    "|FLUX_(TASK_RANK|TASK_LOCAL_ID|JOB_SIZE)"
)
# In a job that was submitted for the run: of Slurm's variables those that say which job it is and
# where are kept. The others are defaults of srun, among them what the job itself asked for; the
# launch words of a site name all counts.
_OF_SLURM = re.compile(
    "(SRUN|SBATCH)_.*|SLURM_(?!(JOB_ID|JOBID|JOB_NODELIST|CLUSTER_NAME|SUBMIT_DIR|SUBMIT_HOST)$).*"
)


class Failure(NamedTuple):
    """Cause (empty: it did not fail) and detail of a run that failed, and what else failure.json
    says of it."""

    cause: str
    detail: str
    more: Mapping[str, Any] = {}


class Outcome(NamedTuple):
    """How the program ended: exit code or signal, and whether we ended it (and why).

    ``started`` is in seconds since the epoch; ``wall_s`` are the seconds until the program's own
    exit, whatever is left of its process group then; ``code`` holds the git states for the record;
    ``suspended``: the launcher, with its job, was stopped meanwhile and told to continue.
    """

    exit_code: int | None
    signal: int | None
    ended_by_us: str | None
    oom: bool
    started: float
    wall_s: float
    code: dict[str, Any]
    suspended: bool = False


def environment(spec: Start) -> dict[str, str]:
    """What the program is started with."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not _NOT_HANDED_ON.fullmatch(name) and not (spec["asked"] and _OF_SLURM.fullmatch(name))
    }
    # Unbuffered, or a program that is killed takes its last lines with it.
    return {**env, "PYTHONUNBUFFERED": "1", **spec["env"]}


def is_anywhere(params: Mapping[str, Any]) -> bool:
    """Whether a run of these parameters is in a Slurm job of more nodes than it takes, so that
    nobody knows on which it is."""
    nodes = -(-int(params["ranks"]) // int(params["ranks_per_node"]))
    return int(os.environ.get("SLURM_JOB_NUM_NODES") or nodes) > nodes


def run_program(spec: Order, work: Path, root: Path | None) -> Outcome:
    """Start the program in a process group of its own and wait for it within its time limit.

    ``root`` is the repository whose git state is recorded (None: there is none), with that of the
    user's study; git reads them while the program runs.
    """
    run_file, out = work / "run.json", str(work.resolve())
    kept = ("run_id", "benchmark", "version", "repeat", "data", "node_local", "time_limit_s")
    # Variables that the experiment sets are in its environment, and none of its parameters.
    params = {name: value for name, value in spec["params"].items() if "." not in name}
    content = {name: value for name, value in spec.items() if name in kept}
    content |= {"params": params, "out": out}
    run_file.write_text(json.dumps(content, indent=1) + "\n")
    words = (word.replace("{run_file}", str(run_file.resolve())) for word in spec["argv"])
    argv = [word.replace("{out}", out) for word in words]
    env = {**profilers.environment(spec["profile"], work), STARTED: repr(time.time())}
    stamps = spec["extract"].get("stamps") if "extract" in spec else None
    if stamps and stamps["source"] not in STREAMS:
        env["SCALESWEEP_SPANS"] = out
    code: dict[str, Any] = {"git": None}

    def look() -> None:  # on a slow file system git outlasts short programs
        code["git"] = root and git_state(root)
        if "study" in spec:
            code["study"] = git_state(Path(spec["study"]), ("config", "benchmarks"))

    oom_before = oom_kills()
    with (work / "stdout.log").open("wb") as stdout, (work / "stderr.log").open("wb") as stderr:
        ended = _run(spec, argv, work, env, stdout, stderr, spec["time_limit_s"], look)
    oom_after = oom_kills()
    oom = None not in (oom_before, oom_after) and oom_after != oom_before
    return ended._replace(oom=oom, code=code)


def run_apart(spec: Start, argv: list[str], work: Path, log: str, limit_s: float) -> str:
    """Start another program as that of the run is, and wait; why it failed, empty if it did not.

    What it prints goes to the file ``log`` in ``work``.
    """
    with (work / log).open("wb") as out:
        ended = _run(spec, argv, work, {}, out, out, limit_s)
    if ended.exit_code == NOT_STARTED:
        return (work / log).read_text(errors="replace").strip()
    if ended.ended_by_us:
        return f"took longer than {limit_s:g} s"
    if ended.signal is not None:
        return f"signal {ended.signal}"
    return f"exit code {ended.exit_code}" if ended.exit_code else ""


def _run(
    spec: Start, argv: list[str], work: Path, more: dict[str, str], out: BinaryIO, err: BinaryIO,
    limit_s: float, meanwhile: Callable[[], None] = lambda: None,
) -> Outcome:  # fmt: skip
    """Start a program, with ``more`` in its environment, and wait until it has ended;
    ``meanwhile`` is called in a thread."""
    if spec["prologue"]:
        script = "\n".join([*spec["prologue"], f"exec {shlex.join(argv)}"])
        argv = ["bash", "-e", "-c", script]
    env = {**environment(spec), **more, MARK: mark(work)}
    started, clock = time.time(), time.monotonic()
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
            start_new_session=True, preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads yet)
        )  # fmt: skip
    except OSError as error:
        err.write(f"cannot start {argv[0]}: {error.strerror}\n".encode())
        wall_s = time.monotonic() - clock
        return Outcome(NOT_STARTED, None, None, False, started, wall_s, {})
    with stop_on_signal(process, work) as continued:
        thread = threading.Thread(target=meanwhile, daemon=True)
        thread.start()
        in_time = _wait(process, limit_s)
        wall_s = time.monotonic() - clock
        _end_group(process)
        if process.returncode:
            end_orphans(work.parents[1], work)  # ranks with sessions of their own
        thread.join()
    code, by_us = process.returncode, None if in_time else "time limit"
    exit_code, number = (code, None) if code >= 0 else (None, -code)
    return Outcome(exit_code, number, by_us, False, started, wall_s, {}, bool(continued))


@contextlib.contextmanager
def stop_on_signal(process: "subprocess.Popen[bytes]", work: Path) -> Iterator[list[int]]:
    """On SIGTERM, SIGINT or SIGHUP end the program and its ranks, then leave with the usual code.

    Yields a list to which each SIGCONT is added.
    """
    continued: list[int] = []

    def stop(number: int, _frame: Any) -> NoReturn:
        # The kernel sends one for each thread of a Snakemake that is killed.
        for other in endings:
            signal.signal(other, signal.SIG_IGN)
        # No failure.json: the run was called off, not tried in vain; it stays pending.
        sys.exit(128 + number)

    endings = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    handlers: dict[int, Any] = dict.fromkeys(endings, stop)
    handlers[signal.SIGCONT] = lambda number, _frame: continued.append(number)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield continued
    except SystemExit:
        _end_group(process)
        end_orphans(work.parents[1], work)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(process: "subprocess.Popen[bytes]", limit_s: float) -> bool:
    """Wait for the program's end; False if it was not over after so many seconds.

    ``Popen.wait`` with a limit looks every 50 ms only, by which every run would seem longer.
    """
    last = time.monotonic() + limit_s
    try:
        ended = os.pidfd_open(process.pid)
    except OSError:  # Linux before 5.3
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
        return process.returncode is not None
    try:
        while (left_s := last - time.monotonic()) > 0:
            if select.select([ended], [], [], min(left_s, _LONGEST_S))[0]:
                process.wait()
                return True
        return False
    finally:
        os.close(ended)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End whatever is left of the program's process group: politely, then not."""
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 1.0)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and process.pid in _running_groups():
            time.sleep(0.02)
            process.poll()
    process.wait()


def _running_groups() -> Iterator[int]:
    """The process group of every process of this machine but zombies, which are others' to reap:
    one that srun left stayed for seconds."""
    for name in os.listdir("/proc"):  # noqa: PTH208 (speed: there may be thousands)
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:  # noqa: PTH123 (as above)
                    state, _, group, *_ = file.read().rpartition(") ")[2].split()
            except (OSError, ValueError):
                continue  # gone
            if state not in "ZX":
                yield int(group)
