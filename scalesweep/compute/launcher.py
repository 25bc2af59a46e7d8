"""The launcher: start one run, watch it, and leave a record or a failure.

The same locally and in a Slurm job; standard library only until the program has ended. Its work is
in ``attempt-<n>/`` of the run's folder (run file, logs, what the program writes); only a result
that is whole becomes ``samples.npz`` and, last and by rename, ``record.json``.
"""

import contextlib
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scalesweep.compute import hangs
from scalesweep.compute.job_spec import STREAMS, Order
from scalesweep.compute.load import counts, load_between
from scalesweep.compute.power import energy_metrics
from scalesweep.compute.power_sampling import Sampling
from scalesweep.compute.program import (
    Failure,
    Outcome,
    environment,
    is_anywhere,
    run_apart,
    run_program,
)
from scalesweep.compute.program_output import BadResultError, read_native, unsupported
from scalesweep.core import disk_full, record
from scalesweep.core.causes import Cause
from scalesweep.core.errors import UserError
from scalesweep.core.locks import only_one
from scalesweep.core.orphans import end_orphans
from scalesweep.core.profilers import FOLDER, NONE, PPROF, lacks, left_files, summary_words
from scalesweep.core.program_files import described_image, described_program
from scalesweep.core.record_check import BadRecordError

# How long the profiles of all ranks may take to be summed up.
_SUMMARY_S = 300.0


def launch(spec: Order, root: Path | None) -> int:
    """Run one attempt of the run that ``spec`` describes; 0 if a record was written, else 1.

    ``root`` is the repository whose git state is recorded, if there is one.
    """
    folder = Path(spec["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(folder):
        # Another launcher may have measured this run since it was planned (a job requeued).
        with contextlib.suppress(OSError, BadRecordError):
            if record.read_record(folder / record.RECORD):
                print(f"{folder.name}: already finished, skipped")
                return 0
        end_orphans(folder.parent)
        return _Attempt(spec, folder).run(root)


class _Attempt:
    """An attempt at a run, with a number and a folder of its own."""

    def __init__(self, spec: Order, folder: Path) -> None:
        # After the last one there is: others may have been thrown away.
        numbers = [path.name.partition("-")[2] for path in folder.glob("attempt-*")]
        self.number = 1 + max((int(n) for n in numbers if n.isdecimal()), default=0)
        self.spec, self.folder, self.work = spec, folder, folder / f"attempt-{self.number}"
        self.work.mkdir()
        if (folder / record.FAILURE).is_file():
            # Kept: once this attempt has ended, the file describes it, or is gone.
            shutil.copy(folder / record.FAILURE, self.work / record.PREVIOUS_FAILURE)
        job = os.environ.get("SLURM_JOB_ID", "")
        # The Slurm job that was submitted for this run.
        self.job = int(job) if spec["asked"] and job.isdecimal() else None
        self.base: dict[str, Any] = {}  # of the record: what does not depend on the result

    def run(self, root: Path | None) -> int:
        """Run the program and keep what it has left; 0 if that is a record."""
        outcome = self._measure(root)
        verdict = self._why_ended(outcome)
        if verdict.cause in ("", Cause.UNSUPPORTED):
            try:
                self._keep_record(verdict)
                return 0
            except (BadResultError, UserError, OSError) as error:
                verdict = self._why_refused(error)
        self._keep_failure(outcome, verdict)
        return 1

    def _measure(self, root: Path | None) -> Outcome:
        """Run the program and sample its power."""
        spec, work = self.spec, self.work
        about: dict[str, Any] = {"order": spec["order"]} if "order" in spec else {}
        if "program" in spec:
            # A prologue may extend the PATH, which is known in its shell only.
            search = "" if spec["prologue"] else environment(spec).get("PATH")
            about["program"] = described_program(spec["program"], "extract" in spec, search)
        if "container" in spec:
            about["container"] = described_image(spec["container"])
        with Sampling(spec, work) as sampling:
            before = counts()
            outcome = run_program(spec, work, root)
            load = load_between(before, counts())
            work.mkdir(parents=True, exist_ok=True)  # the program may have removed it
        started = datetime.fromtimestamp(outcome.started, UTC)
        ended = started + timedelta(seconds=outcome.wall_s)
        self.base = {
            **{name: spec[name] for name in ("run_id", "benchmark", "version", "repeat", "site")},
            "point": spec["params"],
            "source": "measured",
            "started": started.isoformat(timespec="milliseconds"),
            "ended": ended.isoformat(timespec="milliseconds"),
            "wall_s": outcome.wall_s,
            "attempt": self.number,
            **outcome.code,
            "command": spec["argv"],
            **about,
            **sampling.result((outcome.started, outcome.started + outcome.wall_s)),
            **({} if is_anywhere(spec["params"]) else {"load": load}),
        }
        if outcome.exit_code == 0 and (words := summary_words(spec["profile"], work)):
            # Where it fails the profile lacks what it would have printed.
            run_apart(spec, words, work, f"{FOLDER}/{PPROF}", _SUMMARY_S)
        if spec["profile"] != NONE:
            self.base["profile"] = left_files(spec["profile"], work)
        if "extract" in spec:
            # Imported here, because it takes milliseconds, which native programs are spared.
            from scalesweep.compute.external_program import keep_attempt

            keep_attempt(spec, work, self.base, self.job)
        return outcome

    def _why_ended(self, outcome: Outcome) -> Failure:
        """Why the program failed, if it did."""
        spec, work = self.spec, self.work
        if outcome.ended_by_us and not outcome.suspended:
            return hangs.judge(work, spec["time_limit_s"], spec["params"]["ranks"])
        hangs.remove(work)
        if outcome.suspended and (outcome.ended_by_us or outcome.exit_code == 0):
            said = "stopped meanwhile, and told to continue (SIGCONT)"
            return Failure(Cause.SUSPENDED, f"{said}: its times are not the program's")
        if outcome.exit_code == 0:
            return Failure("", "")
        # Imported here, because it takes milliseconds, which runs that end well are spared.
        from scalesweep.compute.failure_cause import failure_of

        return failure_of(outcome, work, spec)

    def _why_refused(self, error: Exception) -> Failure:
        """Why the result of a program that ended well will not do or cannot be kept."""
        if isinstance(error, OSError) and (full := disk_full.text_of(error, self.folder)):
            return Failure(Cause.DISK_FULL, full)
        # It may not have looked whether all was written.
        full = disk_full.why_failed(self.work, ())
        return Failure(Cause.BAD_RESULT if full is None else Cause.DISK_FULL, full or str(error))

    def _keep_record(self, verdict: Failure) -> None:
        """Write the run's record, of a result or of why this machine has none (UNSUPPORTED). Raises
        BadResultError, UserError or OSError if the result will not do or cannot be kept."""
        spec, folder, work, base = self.spec, self.folder, self.work, self.base
        done = not verdict.cause
        native = self._result() if done else unsupported(verdict.detail)
        if done and "profile" in base:
            lacking = lacks(spec["profile"], base["profile"]["files"], native["notes"])
            if lacking:
                raise BadResultError(f"profile {spec['profile']}: {lacking}")
        if self.job is not None:
            native["resources"]["slurm"] = {"job_id": self.job, **(spec["asked"] or {})}
        energy = energy_metrics(base.get("energy"), base["wall_s"]) if done else {}
        native["metrics"] = {**energy, **native["metrics"]}
        record.completed({**base, **native, "samples": None}, folder.name)  # before anything moves
        # A record that is about to be replaced moves to this attempt's folder, with its files.
        if (folder / record.RECORD).exists():
            for name in (record.RECORD, record.SAMPLES, record.POWER):
                with contextlib.suppress(FileNotFoundError):
                    (folder / name).replace(work / f"{record.PREVIOUS}{name}")
        record.publish(work, folder)
        samples = work / (record.EXTRACTED if "extract" in spec else record.SAMPLES)
        record.write_record(folder, {**base, **native}, samples if samples.exists() else None)
        (folder / record.FAILURE).unlink(missing_ok=True)
        said = f"done in {base['wall_s']:.1f} s" if done else f"unsupported: {verdict.detail}"
        print(f"{folder.name}: {said}")

    def _result(self) -> dict[str, Any]:
        """The parts of the record that tell the result; raises as ``_keep_record``."""
        if "extract" not in self.spec:
            return read_native(self.work)
        from scalesweep.compute.external_program import read_result

        parts, reading = read_result(self.work, self.spec["extract"])
        for warning in reading.warnings:
            print(f"{self.spec['run_id']}: warning: {warning}", file=sys.stderr)
        return parts

    def _keep_failure(self, outcome: Outcome, verdict: Failure) -> None:
        """Write the run's failure.json."""
        spec, work = self.spec, self.work
        failure = {
            "run_id": spec["run_id"],
            "cause": verdict.cause,
            "detail": verdict.detail,
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "attempt": self.number,
            "started": self.base["started"],
            "ended": self.base["ended"],
            "last_lines": [it for log in STREAMS.values() for it in record.last_lines(work / log)],
            **verdict.more,
        }
        if "extract" in spec and outcome.exit_code == 0 and verdict.cause == Cause.BAD_RESULT:
            # With other patterns the logs may be read again.
            failure["extract_digest"] = spec["extract"]["digest"]
        if self.job is not None:
            failure |= {"job_id": self.job, "asked": spec["asked"]}
        try:
            record.write_failure(self.folder, failure)
        finally:  # even if there was no space for it
            said = f"{self.folder.name}: {verdict.cause}: {verdict.detail}"
            print(f"{said} (logs in {work})", file=sys.stderr)
