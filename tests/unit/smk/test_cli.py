"""What every command-line script shares: how it ends."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("becomes", ["raise ImportError('you should not try to import numpy')", ""])
def test_ctrl_c_during_an_import_is_no_error_of_the_library(becomes: str) -> None:
    """numpy turns it into an ImportError, with a traceback and an advice that is wrong."""
    code = (
        "import os, signal\n"
        "from scalesweep.smk.cli import run_main\n"
        "def load():\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n"
        f"        {becomes or 'pass'}\n"
        "    return lambda: print('carried out')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run_main(load)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: interrupted\n")


def test_closed_streams_are_no_error_and_lend_their_numbers_to_no_file() -> None:
    code = (
        "import os\n"
        "from scalesweep.smk.cli import run_main\n"
        "def main():\n"
        "    print('unseen')\n"
        "    assert os.system('echo unseen; echo unseen >&2') == 0\n"
        "    assert open('/dev/zero').fileno() > 2\n"
        "run_main(lambda: main)\n"
    )
    for closed in ("1>&-", "2>&-", "1>&- 2>&-"):
        done = subprocess.run(
            ["bash", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (closed, done)
