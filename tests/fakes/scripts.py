"""The steps of the workflow, called in this process: starting one takes seconds."""

import contextlib
import gc
import io
import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

STEP = Path(__file__).resolve().parents[2] / "workflow" / "scripts" / "step.py"


def run_script(
    name: str, *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> "CompletedProcess[str]":
    """Run a step as the interpreter would: exit code, and what it writes to stdout and stderr.

    ``env`` is added to the environment. What a script changes of this process is changed back:
    ``sys.path`` and how garbage is collected.
    """
    command = [str(STEP), name, *map(str, words)]
    out, err = io.StringIO(), io.StringIO()
    threshold = gc.get_threshold()
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.object(sys, "path", [str(STEP.parent), *sys.path]),
        mock.patch.dict(os.environ, env or {}),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_path(command[0], run_name="__main__")
            code: object = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        finally:
            gc.unfreeze()
            gc.set_threshold(*threshold)
    if isinstance(code, str):  # as the interpreter does with what sys.exit is given
        err.write(f"{code}\n")
        code = 1
    assert isinstance(code, int)
    return CompletedProcess(command, code, out.getvalue(), err.getvalue())
