"""The launcher: start one run, watch it, and leave a record or a failure.

Standard library only, the same locally and in a Slurm job. Its work is in ``attempt-<n>/`` of
the run's folder (run file, logs, what the program writes); only a result that is whole becomes
``samples.npz`` and, last and by rename, ``record.json``.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from scalesweep.compute import hangs
from scalesweep.compute.canary import Canary
from scalesweep.compute.job_spec import Order
from scalesweep.compute.load import Load
from scalesweep.compute.native_format import NativeParts
from scalesweep.compute.node_step import is_anywhere
from scalesweep.compute.power.outcome import energy_metrics
from scalesweep.compute.power_sampling import Sampling
from scalesweep.compute.program import Outcome, environment, run_apart, run_program
from scalesweep.compute.program_output import BadResultError, read_native, unsupported
from scalesweep.core import disk_full
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.files import write_atomic
from scalesweep.core.locks import only_one
from scalesweep.core.orphans import end_orphans
from scalesweep.core.profilers import FOLDER, NONE, PPROF, lacks, left_files, summary_words
from scalesweep.core.program_files import described_program
from scalesweep.core.record import (
    EXTRACTED,
    FAILURE,
    FAILURE_SCHEMA,
    POWER,
    PREVIOUS,
    PREVIOUS_FAILURE,
    RECORD,
    SAMPLES,
    last_lines,
    publish,
    read_record,
    write_record,
)
from scalesweep.core.record_check import BadRecordError

# How long the profiles of all ranks may take to be summed up.
_SUMMARY_S = 300.0


def launch(spec: Order, root: Path | None) -> int:
    """Run one attempt of the run that ``spec`` describes; 0 if a record was written, else 1.

    ``spec``: run_id, profile, benchmark, version, params, repeat, site, folder, data, node_local,
    argv, env, prologue, time_limit_s, asked, power, and for a foreign program extract (see
    ``scalesweep.jobs.run_spec.run_spec``); order, where the run is one of a campaign, is kept
    as it is. ``root`` is the repository whose git state is recorded, if there is one.
    """
    folder = Path(spec["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder):
        if _is_there(folder):
            print(f"{folder.name}: already finished, skipped")
            return 0
        end_orphans(folder.parent)
        attempt = _begin(folder, spec)
        measured = _measure(spec, attempt, root)
        verdict = _end(measured, attempt.work, spec)
        if verdict.cause is None or verdict.cause == Cause.UNSUPPORTED:
            try:
                _publish_record(spec, attempt, measured, verdict)
                return 0
            except (BadResultError, UserError, OSError) as error:
                verdict = _why_refused(error, attempt.work)
        _publish_failure(spec, attempt, measured, verdict)
        return 1


class _Attempt(NamedTuple):
    """An attempt at a run: its number, the run's folder and its own, and the Slurm job it is in."""

    number: int
    folder: Path
    work: Path
    job: int | None


class _Measured(NamedTuple):
    """How the program ended, all of the record that does not depend on what it has left, and
    whether it has removed the attempt's folder."""

    outcome: Outcome
    base: dict[str, Any]
    removed: bool


class _Verdict(NamedTuple):
    """Cause (None: no failure) and detail, and what else failure.json says of it."""

    cause: str | None
    detail: str
    more: Mapping[str, Any] = MappingProxyType({})


def _measure(spec: Order, attempt: _Attempt, root: Path | None) -> _Measured:
    """Run the program and sample its power."""
    work = attempt.work
    program = _program(spec)
    canary = Canary(spec, work)
    canary.measure("before")
    with Sampling(spec, work) as sampling:
        load = Load()
        outcome = run_program(spec, work, root)
        load.ended()
        sampling.ran(outcome.started, outcome.started + outcome.wall_s)
        if removed := not work.is_dir():
            # Without it there would be no place to say so.
            for path in (work.parent, work):
                if not path.is_dir():
                    path.unlink(missing_ok=True)
                    path.mkdir()
    if outcome.exit_code == 0:  # what has failed is compared with nothing
        canary.measure("after")
    started = datetime.fromtimestamp(outcome.started, UTC)
    ended = started + timedelta(seconds=outcome.wall_s)
    base: dict[str, Any] = {
        "run_id": spec["run_id"],
        "benchmark": spec["benchmark"],
        "version": spec["version"],
        "repeat": spec["repeat"],
        "point": spec["params"],
        "site": spec["site"],
        "source": "measured",
        "started": started.isoformat(timespec="milliseconds"),
        "ended": ended.isoformat(timespec="milliseconds"),
        "wall_s": outcome.wall_s,
        "attempt": attempt.number,
        **outcome.code,
        "command": spec["argv"],
        **({"order": spec["order"]} if "order" in spec else {}),
        **program,
        **sampling.result(),
        **canary.result(),
        **({} if is_anywhere(spec["params"]) else load.result()),
    }
    if outcome.exit_code == 0 and (words := summary_words(spec["profile"], work)):
        # Where it fails the profile lacks what it would have printed.
        run_apart(spec, words, work, f"{FOLDER}/{PPROF}", _SUMMARY_S)
    if spec["profile"] != NONE:
        base["profile"] = left_files(spec["profile"], work)
    if "extract" in spec:
        # Imported here, because it takes milliseconds, which native programs are spared.
        from scalesweep.compute.external_program import keep_attempt

        keep_attempt(spec, work, base, outcome.exit_code, attempt.job, environment(spec))
    return _Measured(outcome, base, removed)


def _program(spec: Order) -> dict[str, Any]:
    """What the record says of the program that is about to start."""
    if "program" not in spec:
        return {}
    # A prologue may extend the PATH, which is known in its shell only.
    search = "" if spec["prologue"] else environment(spec).get("PATH")
    return {"program": described_program(spec["program"], "extract" in spec, search)}


def _publish_record(spec: Order, attempt: _Attempt, measured: _Measured, verdict: _Verdict) -> None:
    """Write the run's record, of a result or of why this machine has none (UNSUPPORTED).

    Raises BadResultError, UserError or OSError if the result will not do or cannot be kept.
    """
    folder, work, base = attempt.folder, attempt.work, measured.base
    done = verdict.cause is None
    native = _read(spec, work) if done else unsupported(verdict.detail)
    if done and "profile" in base:
        lacking = lacks(spec["profile"], base["profile"]["files"], native["notes"])
        if lacking:
            raise BadResultError(f"profile {spec['profile']}: {lacking}")
    if attempt.job is not None:
        native["resources"]["slurm"] = {"job_id": attempt.job, **(spec["asked"] or {})}
    energy = energy_metrics(base.get("energy"), base["wall_s"]) if done else {}
    native["metrics"] = {**energy, **native["metrics"]}
    _keep_previous(folder, work)
    publish(work, folder)
    samples = work / (EXTRACTED if "extract" in spec else SAMPLES)
    write_record(folder, {**base, **native}, samples if samples.exists() else None)
    (folder / FAILURE).unlink(missing_ok=True)
    said = f"done in {base['wall_s']:.1f} s" if done else f"unsupported: {verdict.detail}"
    print(f"{folder.name}: {said}")


def _publish_failure(
    spec: Order, attempt: _Attempt, measured: _Measured, verdict: _Verdict
) -> None:
    """Write the run's failure.json."""
    outcome, base, work = measured.outcome, measured.base, attempt.work
    failure = {
        "schema": FAILURE_SCHEMA,
        "run_id": spec["run_id"],
        "cause": verdict.cause,
        "detail": verdict.detail,
        "exit_code": outcome.exit_code,
        "signal": outcome.signal,
        "attempt": attempt.number,
        "started": base["started"],
        "ended": base["ended"],
        "last_lines": _last_lines(work),
        **verdict.more,
    }
    if "extract" in spec and outcome.exit_code == 0 and verdict.cause == Cause.BAD_RESULT:
        # With other patterns the logs may be read again.
        failure["extract_digest"] = spec["extract"]["digest"]
    if attempt.job is not None:
        failure |= {"job_id": attempt.job, "asked": spec["asked"]}
    try:
        write_atomic(attempt.folder / FAILURE, json.dumps(failure, indent=1) + "\n")
    finally:  # even if there was no space for it
        name = attempt.folder.name
        print(f"{name}: {verdict.cause}: {verdict.detail} (logs in {work})", file=sys.stderr)


def _begin(folder: Path, spec: Order) -> _Attempt:
    """A new attempt at a run, with a folder of its own."""
    # After the last one there is: others may have been thrown away.
    numbers = [path.name.partition("-")[2] for path in folder.glob("attempt-*")]
    attempt = 1 + max((int(n) for n in numbers if n.isdecimal()), default=0)
    work = folder / f"attempt-{attempt}"
    work.mkdir()
    if (folder / FAILURE).is_file():
        # Kept: once this attempt has ended, the file describes it, or is gone.
        shutil.copy(folder / FAILURE, work / PREVIOUS_FAILURE)
    return _Attempt(attempt, folder, work, _slurm_job(spec))


def _is_there(folder: Path) -> bool:
    """Whether another launcher has measured this run since it was planned (a job requeued)."""
    try:
        return bool(read_record(folder / RECORD))
    except (OSError, BadRecordError):
        return False


def _keep_previous(folder: Path, work: Path) -> None:
    """Move a record that is about to be replaced, with its files, into the new attempt's folder."""
    for name in (RECORD, SAMPLES, POWER) if (folder / RECORD).exists() else ():
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(work / f"{PREVIOUS}{name}")


def _slurm_job(spec: Order) -> int | None:
    """Id of the Slurm job that was submitted for this run; None outside of one."""
    job = os.environ.get("SLURM_JOB_ID", "")
    return int(job) if spec["asked"] and job.isdecimal() else None


def _end(measured: _Measured, work: Path, spec: Order) -> _Verdict:
    """Why the program failed, if it did."""
    outcome = measured.outcome
    if measured.removed:
        return _Verdict(
            Cause.BAD_RESULT, f"the program removed its folder {work.name}, with its logs"
        )
    if outcome.suspended and (outcome.ended_by_us or outcome.exit_code == 0):
        hangs.remove(work)
        said = "stopped meanwhile, and told to continue (SIGCONT): its times are not the program's"
        return _Verdict(Cause.SUSPENDED, said)
    if outcome.ended_by_us:
        late = hangs.judge(work, spec["time_limit_s"], spec["params"]["ranks"])
        return _Verdict(late.cause, late.detail, {"stacks": late.groups} if late.groups else {})
    hangs.remove(work)
    return _judge(outcome, work, spec)


def _judge(outcome: Outcome, work: Path, spec: Order) -> _Verdict:
    """Why a program failed by itself, if it did."""
    if outcome.exit_code == 0:
        return _Verdict(None, "")
    # Imported here, because it takes milliseconds, which runs that end well are spared.
    from scalesweep.compute.failure_cause import failure_of

    return _Verdict(*failure_of(outcome, work, spec))


def _why_refused(error: Exception, work: Path) -> _Verdict:
    """Why the result of a program that ended well will not do or cannot be kept."""
    if isinstance(error, OSError):
        if not disk_full.is_full(error):
            raise error
        return _Verdict(Cause.DISK_FULL, disk_full.failure_text(error, work.parent))
    full = disk_full.why_failed(work, ())  # it may not have looked whether all was written
    return (
        _Verdict(Cause.BAD_RESULT, str(error)) if full is None else _Verdict(Cause.DISK_FULL, full)
    )


def _last_lines(work: Path) -> list[str]:
    """The last lines of the program's output, stdout first, then stderr."""
    return last_lines(work / "stdout.log") + last_lines(work / "stderr.log")


def _read(spec: Order, work: Path) -> NativeParts:
    """The parts of the record that tell the result; raises BadResultError or UserError."""
    if "extract" not in spec:
        return read_native(work)
    from scalesweep.compute.external_program import read_result

    try:
        parts, reading = read_result(work, spec["extract"])
    except OSError as error:
        raise BadResultError(f"{error.filename} cannot be read: {error.strerror}") from None
    for warning in reading.warnings:
        print(f"{spec['run_id']}: warning: {warning}", file=sys.stderr)
    return parts
