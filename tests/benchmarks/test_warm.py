"""The short way to start programs (`warm.py`) is, but for its speed, like the usual one."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.benchmarks.programs import entry, warm
from tests.benchmarks.warm import EXECUTABLE, SNAKEMAKE

pytestmark = pytest.mark.slow

SCRIPT = """
import json, os, sys
assert "tensorflow" in sys.modules
print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["WORD"], sys.stdin.read()]))
print("wrong", file=sys.stderr)
{end}
"""


def write(folder, end):
    path = folder / "script.py"
    path.write_text(SCRIPT.format(end=end))
    return str(path)


def call(words, **changes):
    return subprocess.run(words, capture_output=True, text=True, check=False, **changes)


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("", 0, ""),
        ("sys.exit(65)", 65, ""),
        ("sys.exit('no data')", 1, "no data"),
        ("os.kill(os.getpid(), 11)", -11, ""),
        ("import atexit; atexit.register(print, 'the end', file=sys.stderr)", 0, "the end"),
        ("1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_streams_folder_variables_and_exit_code(tmp_path, end, code, said):
    words = [*warm(write(tmp_path, end)), "a b", "--c"]
    env = os.environ | {"WORD": "x=y z"}
    done = call(words, cwd=tmp_path, env=env, input="given")
    assert done.returncode == code, done.stderr
    assert said in done.stderr and done.stderr.startswith("wrong\n")
    if code >= 0:
        assert json.loads(done.stdout) == [["a b", "--c"], str(tmp_path), "x=y z", "given"]


def test_errors_of_programs_are_the_same(tmp_path):
    """Usage, an unknown program, an unreadable run file."""
    for name, *more in (["nt3"], ["nt4"], ["nt3", "--run", str(tmp_path / "none")], ["nt3.stage"]):
        usual, short = (call([*words, *more]) for words in (entry(name), warm(name)))
        assert (short.returncode, short.stdout) == (usual.returncode, usual.stdout)
        assert short.stderr == usual.stderr and short.returncode == 2


def test_a_script_of_a_rule_knows_its_snakemake(tmp_path):
    """Descriptor 3, the process that it ends with, and which Python starts what it starts."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\nos.write(3, b'seen')\n"
        f"print(os.environ['{SNAKEMAKE}'] == str(os.getppid()), sys.executable)\n"
    )
    words = shlex.join(warm(str(script)))
    env = os.environ | {EXECUTABLE: "/x/python"}
    done = call(["bash", "-c", f"{SNAKEMAKE}=$PPID {words} 3>&2"], env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True /x/python\n", "seen")


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_ends_with_the_process_that_stands_for_it(tmp_path, sent):
    path = tmp_path / "sleeps.py"
    path.write_text(
        "import os, sys, time\nfrom pathlib import Path\n"
        "Path(sys.argv[1]).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    )
    process = subprocess.Popen([*warm(str(path)), str(tmp_path / "pid")])
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    program = Path("/proc") / (tmp_path / "pid").read_text()
    assert program.exists()
    process.send_signal(sent)
    assert process.wait() == -sent
    while program.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
