"""What a call of Snakemake is told of signals to `scalesweep run` alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# As in the background of a shell's script, where Ctrl-C is ignored; the tests may be under nohup.
CALL = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from scalesweep.commands.snakemake_call import call
call(["waits"])
"""
# In place of Snakemake: each signal ends it. What it has started is told of all but SIGTERM.
WAITS = """\
import signal, subprocess, sys
JOB = "import signal; print('waits', flush=True); print(signal.sigwait([1, 2, 15]) + 0)"
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
signal.pthread_sigmask(signal.SIG_BLOCK, [1, 2, 15])
with subprocess.Popen([sys.executable, "-c", JOB]) as job:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [1, 2, 15])
    try:
        job.wait()
    finally:
        job.terminate()
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_call_alone_reaches_its_snakemake(tmp_path: Path, number: int) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    with subprocess.Popen(
        [sys.executable, "-c", CALL], env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE, text=True,
    ) as call:  # fmt: skip
        assert call.stdout and call.stdout.readline() == "waits\n"
        call.send_signal(number)
        assert call.stdout.read() == f"{number:d}\n"
    assert call.returncode == 128 + number
