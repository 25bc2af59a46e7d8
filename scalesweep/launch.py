"""The launcher: start one run, watch it, and leave a record or a failure.

Standard library only, the same locally and in a Slurm job. Its work is in ``attempt-<n>/`` of
the run's folder (run file, logs, what the program writes); only a result that is whole becomes
``samples.npz`` and, last and by rename, ``record.json``.
"""

import array
import ast
import contextlib
import ctypes
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from scalesweep.errors import UserError
from scalesweep.foreign import EXTRACTED, keep_attempt, read_result
from scalesweep.host import git_state, host_facts, oom_kills
from scalesweep.lock import only_one
from scalesweep.record import (
    FAILURE,
    PREVIOUS_FAILURE,
    SAMPLES,
    SCHEMA,
    last_lines,
    write_atomic,
    write_record,
)

# What a benchmark program's exit code says beyond "wrong" (sysexits.h: EX_DATAERR, EX_NOINPUT,
# EX_UNAVAILABLE). The last means that this machine cannot do what the point asks.
EXIT_CAUSES = {65: "BAD_RESULT", 66: "MISSING_DATA", 69: "UNSUPPORTED"}
GRACE_S = 5.0
_PR_SET_PDEATHSIG = 1
_NATIVE_KEYS = ("phases", "metrics", "work", "resources", "environment", "notes")
# Snakemake sets these to the rule's threads in every shell job; a benchmark that did not ask for
# them must not be measured under them.
_SNAKEMAKE_SETS = frozenset(
    f"{library}_NUM_THREADS" for library in ("OMP", "GOTO", "OPENBLAS", "MKL", "VECLIB", "NUMEXPR")
)


@dataclass(frozen=True)
class Outcome:
    """How the program ended: exit code or signal, and whether we ended it (and why)."""

    exit_code: int | None
    signal: int | None
    ended_by_us: str | None
    oom: bool


class Refused(Exception):
    """The program ended well, but its result cannot be used."""


def launch(spec: Mapping[str, Any], root: Path) -> int:
    """Run one attempt of the run that ``spec`` describes; 0 if a record was written, else 1.

    ``spec``: run_id, benchmark, version, params, repeat, site, folder, data, node_local, argv,
    env, prologue, time_limit_s, asked, and for a foreign program extract (see
    ``scalesweep.runs.run_spec``). ``root`` is the repository whose git state is recorded.
    """
    folder = Path(spec["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder):
        attempt = 1 + len(list(folder.glob("attempt-*")))
        work = folder / f"attempt-{attempt}"
        work.mkdir()
        if (folder / FAILURE).exists():
            # Kept: once this attempt has ended, the file tells of it, or is gone.
            shutil.copy(folder / FAILURE, work / PREVIOUS_FAILURE)
        started = datetime.now(UTC)
        clock = time.monotonic()
        job = _slurm_job(spec)
        outcome, git = _run_program(spec, work, root)
        wall_s = time.monotonic() - clock
        times = {
            "started": started.isoformat(timespec="milliseconds"),
            "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        # All of the record that does not depend on what the program has left.
        base = {
            **{key: spec[key] for key in ("run_id", "benchmark", "version", "repeat")},
            "point": spec["params"],
            "site": spec["site"],
            "source": "measured",
            **times,
            "wall_s": wall_s,
            "attempt": attempt,
            "git": git,
            "command": spec["argv"],
        }
        if "extract" in spec:
            keep_attempt(spec, work, base, outcome.exit_code, job, _environment(spec))
        cause, detail = _judge(outcome, work, spec)
        if cause is None or cause == "UNSUPPORTED":
            try:
                native = _read(spec, work) if cause is None else _unsupported(detail)
                if job is not None:
                    native["resources"]["slurm"] = {"job_id": job, **spec["asked"]}
                samples = work / (EXTRACTED if "extract" in spec else SAMPLES)
                write_record(folder, {**base, **native}, samples if samples.exists() else None)
                (folder / FAILURE).unlink(missing_ok=True)
                said = f"unsupported: {detail}" if cause else f"done in {wall_s:.1f} s"
                print(f"{spec['run_id']}: {said}")
                return 0
            except (Refused, UserError) as error:
                cause, detail = "BAD_RESULT", str(error)
        failure = {
            "schema": SCHEMA,
            "run_id": spec["run_id"],
            "cause": cause,
            "detail": detail,
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "attempt": attempt,
            **times,
            "last_lines": _last_lines(work),
        }
        if "extract" in spec and outcome.exit_code == 0 and cause == "BAD_RESULT":
            # With other patterns the logs may be read again.
            failure["extract_digest"] = spec["extract"]["digest"]
        if job is not None:
            failure |= {"job_id": job, "asked": spec["asked"]}
        write_atomic(folder / FAILURE, json.dumps(failure, indent=1) + "\n")
        print(f"{spec['run_id']}: {cause}: {detail} (logs in {work})", file=sys.stderr)
        return 1


def _slurm_job(spec: Mapping[str, Any]) -> int | None:
    """Id of the Slurm job that was submitted for this run; None outside of one."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return int(job) if spec["asked"] and job.isdecimal() else None


def _die_with_parent() -> None:
    # A launcher killed with -9 must not leave its program measuring on, unseen.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the program is started with."""
    env = {name: value for name, value in os.environ.items() if name not in _SNAKEMAKE_SETS}
    # Unbuffered, or a program that is killed takes its last lines with it.
    return {**env, "PYTHONUNBUFFERED": "1", **spec["env"]}


def _run_program(
    spec: Mapping[str, Any], work: Path, root: Path
) -> tuple[Outcome, dict[str, Any] | None]:
    """Start the program in a process group of its own and wait for it within its time limit."""
    run_file = work / "run.json"
    content = {key: spec[key] for key in ("run_id", "benchmark", "version", "params", "repeat")}
    content |= {"data": spec["data"], "node_local": spec["node_local"], "out": str(work.resolve())}
    run_file.write_text(json.dumps(content, indent=1) + "\n")
    argv = [word.replace("{run_file}", str(run_file.resolve())) for word in spec["argv"]]
    argv = [word.replace("{out}", content["out"]) for word in argv]
    if spec["prologue"]:
        script = "\n".join([*spec["prologue"], f"exec {shlex.join(argv)}"])
        argv = ["bash", "-e", "-c", script]
    env = {**_environment(spec), "SCALESWEEP_STARTED": repr(time.time())}
    oom_before = oom_kills()
    with (work / "stdout.log").open("wb") as out, (work / "stderr.log").open("wb") as err:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env,
                start_new_session=True, preexec_fn=_die_with_parent,  # noqa: PLW1509 (no threads here)
            )  # fmt: skip
        except OSError as error:
            err.write(f"cannot start {argv[0]}: {error.strerror}\n".encode())
            return Outcome(127, None, None, False), None
        with _stop_on_signal(process):
            git = git_state(root)
            ended_by_us = None
            try:
                process.wait(spec["time_limit_s"])
            except subprocess.TimeoutExpired:
                ended_by_us = "time limit"
            _end_group(process)
    code = process.returncode
    oom_after = oom_kills()
    oom = oom_before is not None and oom_after is not None and oom_after > oom_before
    return Outcome(code if code >= 0 else None, -code if code < 0 else None, ended_by_us, oom), git


@contextlib.contextmanager
def _stop_on_signal(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """On SIGTERM, SIGINT or SIGHUP end the program's group, then leave with the usual code."""

    def stop(number: int, _frame: Any) -> NoReturn:
        _end_group(process)
        # No failure.json: the run was called off, not tried in vain; it stays pending.
        sys.exit(128 + number)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """End whatever is left of the program's process group: politely, then not."""
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 1.0)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and _group_alive(process):
            time.sleep(0.02)
    process.wait()


def _group_alive(process: "subprocess.Popen[bytes]") -> bool:
    process.poll()
    try:
        os.killpg(process.pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _judge(outcome: Outcome, work: Path, spec: Mapping[str, Any]) -> tuple[str | None, str]:
    """Cause and detail of a failed program, or (None, "")."""
    if outcome.ended_by_us:
        return "TIMEOUT", f"not done after its time limit of {spec['time_limit_s']:g} s"
    if outcome.exit_code == 0:
        return None, ""
    code, said = _native_error(work)
    code = code or outcome.exit_code
    said = said or _said(_last_lines(work), spec["benchmark"])
    # What a foreign program means by its exit codes is its own affair.
    known = {} if "extract" in spec else EXIT_CAUSES
    if code in known and (said or known[code] != "UNSUPPORTED"):
        return known[code], said or f"exit code {code}"
    if outcome.oom and (outcome.signal == signal.SIGKILL or code in (1, 137)):
        return "OUT_OF_MEMORY", "the kernel killed a process for lack of memory during the run"
    if outcome.signal is not None:
        return "KILLED", f"signal {signal.Signals(outcome.signal).name}"
    return "NON_ZERO_EXIT", f"exit code {code}" + (f": {said}" if said else "")


def _native_error(work: Path) -> tuple[int | None, str]:
    """Exit code and message that the program left in native_error.json, or (None, "").

    horovodrun exits with 1 whatever its processes exit with.
    """
    try:
        error = json.loads((work / "native_error.json").read_bytes())
        return int(error["exit_code"]), " ".join(str(error["message"]).split())
    except (OSError, ValueError, KeyError, TypeError):
        return None, ""


def _said(lines: list[str], benchmark: str) -> str:
    """The program's own error line (``error: ...`` or ``<benchmark>: ...``), if it printed one."""
    for line in reversed(lines):
        # horovodrun puts the rank in front: [1]<stderr>:
        text = re.sub(r"^\[\d+\]<std(?:err|out)>:\s*", "", line)
        start, _, rest = text.partition(": ")
        if rest and start in ("error", benchmark):
            return rest.strip()
        if text.startswith("cannot start"):
            return text
    return ""


def _last_lines(work: Path) -> list[str]:
    """The last lines of the program's output, stdout first, then stderr."""
    return last_lines(work / "stdout.log") + last_lines(work / "stderr.log")


def _read_native(work: Path) -> dict[str, Any]:
    """The parts of the record that the program wrote, checked; raises Refused."""
    path = work / "native.json"
    try:
        native = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise Refused("the program ended well but wrote no native.json") from None
    except ValueError as error:
        raise Refused(f"native.json is not JSON: {error}") from None
    missing = [key for key in _NATIVE_KEYS if key not in native]
    if missing:
        raise Refused(f"native.json lacks {', '.join(missing)}")
    for name, metric in native["metrics"].items():
        value = metric.get("value") if isinstance(metric, dict) else metric
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(f"metric {name} is not a number")
        if not math.isfinite(value):
            raise Refused(f"metric {name} is {value}")
    if (work / SAMPLES).exists():
        check_finite(work / SAMPLES)
    result = {key: native[key] for key in _NATIVE_KEYS}
    result["environment"] = {**native["environment"], "node": host_facts()}
    return result


def _read(spec: Mapping[str, Any], work: Path) -> dict[str, Any]:
    """The parts of the record that tell the result; raises Refused or UserError."""
    if "extract" not in spec:
        return _read_native(work)
    try:
        parts, reading = read_result(work, spec["extract"])
    except OSError as error:
        raise Refused(f"{error.filename} cannot be read: {error.strerror}") from None
    for warning in reading.warnings:
        print(f"{spec['run_id']}: warning: {warning}", file=sys.stderr)
    return parts


def _unsupported(reason: str) -> dict[str, Any]:
    """The parts of a record that say only why there is no result, and never will be here."""
    return {
        **{key: {} for key in _NATIVE_KEYS},
        "resources": {"hosts": [], "slurm_nodes": []},
        "environment": {"ranks": [], "versions": {}, "variables": {}, "node": host_facts()},
        "unsupported": reason,
    }


def check_finite(samples: Path) -> None:
    """Raise Refused if the .npz is damaged or a float64 array in it holds NaN or infinity."""
    try:
        with zipfile.ZipFile(samples) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                kind, values = _npy_floats(content)
                if kind == "<f8" and not all(map(math.isfinite, values)):
                    raise Refused(f"{SAMPLES}: {name.removesuffix('.npy')} holds NaN or infinity")
    except (zipfile.BadZipFile, ValueError, KeyError, OSError) as error:
        raise Refused(f"{SAMPLES} cannot be read: {error}") from None


def _npy_floats(content: bytes) -> tuple[str, "array.array[float]"]:
    """Type and values of a .npy file (format: numpy.lib.format), read without NumPy."""
    if content[:6] != b"\x93NUMPY":
        raise ValueError("not a .npy member")
    width = 2 if content[6] == 1 else 4
    length = int.from_bytes(content[8 : 8 + width], "little")
    start = 8 + width
    header = ast.literal_eval(content[start : start + length].decode("latin1"))
    values = array.array("d")
    if header["descr"] == "<f8":
        values.frombytes(content[start + length :])
    return header["descr"], values
