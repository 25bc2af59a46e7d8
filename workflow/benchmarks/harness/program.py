"""The run file, errors with their exit codes, and what every benchmark program is run by."""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness import profiling, watch
from harness.native import write_atomically
from harness.phases import since_start

# Exit codes, after sysexits.h; the launcher turns 65, 66, 69 and 75 into BAD_RESULT,
# MISSING_DATA, an unsupported point and LAUNCH_FAILED.
EXIT_FAILED = 1  # as of an error that nobody has foreseen
EXIT_PARAMETERS = 2
EXIT_BAD_DATA = os.EX_DATAERR
EXIT_MISSING_DATA = os.EX_NOINPUT
EXIT_UNSUPPORTED = os.EX_UNAVAILABLE  # this machine cannot do what the point asks
EXIT_LAUNCH = os.EX_TEMPFAIL  # not all ranks were started, or they cannot reach each other
ERROR = "native_error.json"
SAID_S = 10.0  # for which a rank that fails with all others waits for the one that says why


class ProgramError(Exception):
    """Ends the program with one line on standard error and `code` as its exit code."""

    def __init__(self, code: int, message: str) -> None:
        """Keep the exit code with the message; line breaks in the message become spaces."""
        super().__init__(" ".join(message.split()))
        self.code = code


@dataclass(frozen=True)
class Run:
    """One run as its run file states it."""

    run_id: str
    benchmark: str
    version: int
    params: dict[str, Any]
    repeat: int
    data: Path | None
    out: Path
    node_local: Path
    time_limit_s: float | None = None

    @property
    def seed(self) -> int:
        """Seed of this run, from the parameter `seed`: repeats of a point draw other numbers."""
        mixed = np.random.SeedSequence([self.params["seed"], self.repeat])
        return int(mixed.generate_state(1)[0])


def read_run(path: str | Path) -> Run:
    """Read a run file. Raises ProgramError (code 2) when it is unreadable or lacks a field."""
    try:
        content = json.loads(Path(path).read_text())
        return Run(
            **{name: content[name] for name in ("run_id", "benchmark", "version", "repeat")},
            params=dict(content["params"]),
            data=Path(content["data"]) if content["data"] is not None else None,
            **{name: Path(content[name]) for name in ("out", "node_local")},
            time_limit_s=content.get("time_limit_s"),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        said = f"no {error.args[0]}" if isinstance(error, KeyError) else said
        raise ProgramError(EXIT_PARAMETERS, f"run file {path}: {said}") from None


def write_error(out: Path, error: ProgramError) -> None:
    """Leave code and message in ``native_error.json``: horovodrun turns any exit code into 1."""
    content = json.dumps({"exit_code": error.code, "message": str(error)}) + "\n"
    with contextlib.suppress(OSError):  # the line on standard error has said it
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / ERROR, lambda file: file.write(content.encode()))


def run_program(name: str, main: Callable[[Run], None], argv: list[str] | None = None) -> int:
    """Read ``--run FILE`` from the command line, call `main` and return the exit code.

    From there on to the end of the process, `watch` has an eye on the rank.

    A ProgramError becomes one line ``name: message`` on standard error, and ``native_error.json``
    in the run's folder; an empty message is silent (every rank fails together, one of them says
    why). Other exceptions are left to show where they come from.
    """
    args, run = sys.argv[1:] if argv is None else argv, None
    try:
        if len(args) != 2 or args[0] != "--run":
            raise ProgramError(EXIT_PARAMETERS, f"usage: {name} --run FILE")
        run = read_run(args[1])
        if run.time_limit_s is not None:
            watch.arm(run.out, run.time_limit_s, since_start())
        with profiling.python_functions():
            main(run)
    except ProgramError as error:
        if str(error):
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            if run is not None:
                write_error(run.out, error)
        elif run is not None:  # whoever ends first is the end of the rank that says why
            until = time.monotonic() + SAID_S
            while not (run.out / ERROR).exists() and time.monotonic() < until:
                time.sleep(0.05)
        return error.code
    return 0
