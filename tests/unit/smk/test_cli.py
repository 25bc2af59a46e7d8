"""What every command-line script shares: how it ends."""

import os
import subprocess
import sys
from pathlib import Path

from scalesweep.core import own_files
from scalesweep.smk.results_lock import Claims


def test_a_script_that_is_interrupted_while_it_starts_leaves_a_log_that_is_known(
    tmp_path: Path,
) -> None:
    own_files.mark(tmp_path)
    log = tmp_path / "tables.log"
    code = (
        "from scalesweep.smk.cli import run_main\n"
        "def load():\n"
        "    print('loading')\n"
        "    raise KeyboardInterrupt\n"
        "run_main(load)\n"
    )
    with log.open("w") as stream:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=stream, stderr=stream, check=False,
            env={**os.environ, "SCALESWEEP_SNAKEMAKE": str(os.getpid())},
        )  # fmt: skip
    assert done.returncode == 1
    assert sorted(log.read_text().splitlines()) == ["error: interrupted", "loading"]
    assert own_files.is_ours(log)


def test_a_log_of_the_call_itself_is_noted_and_a_users_kept(tmp_path: Path) -> None:
    own_files.mark(tmp_path)
    log = tmp_path / "logs" / "report-now.log"
    log.parent.mkdir()
    claims = Claims(tmp_path, tmp_path / "runs")
    log.write_text("mine")
    for text in ("first", "second"):
        with claims.making_log(log.name):
            log.write_text(text)
        assert own_files.is_ours(log)
    assert [path.read_text() for path in sorted(log.parent.iterdir())] == ["second", "mine"]
