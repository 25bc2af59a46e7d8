"""The last word on a run after its Slurm job has ended."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.status import Status
from scalesweep.slurm.failure import settle
from scalesweep.slurm.sacct import Job
from scalesweep.state.run_state import scan
from tests.fakes.slurm_jobs import ASKED, JOB, TIMEOUT, by_launcher


def failure_in(folder: Path) -> dict[str, Any]:
    content = json.loads((folder / "failure.json").read_bytes())
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize(
    ("job", "more"),
    [
        (JOB, {"cause": "NON_ZERO_EXIT"}),
        (TIMEOUT, {"cause": "TIMEOUT", "detail": "job 12 reached its limit of 60 min"}),
    ],
)
def test_the_launchers_word_stands_unless_slurm_knows_better(
    tmp_path: Path, job: Job, more: dict[str, str]
) -> None:
    failure = by_launcher(tmp_path)
    assert settle(tmp_path, job, ASKED) == more["cause"]
    assert failure_in(tmp_path) == {**failure, **more, "asked": ASKED, "nodes": "node[1-2]"}


@pytest.mark.parametrize(
    "old",
    [
        {},
        {"job_id": 11},
        {"job_id": None},
        # The same job, before Slurm requeued it.
        {"ended": "2026-03-01T07:59:00+00:00"},
    ],
)
def test_a_killed_launcher_is_spoken_for(tmp_path: Path, old: dict[str, Any]) -> None:
    folder = tmp_path / "a"
    if old:
        by_launcher(folder, **old)
    log = tmp_path / "12.log"
    log.write_text("first\n\n" + "line\n" * 30 + "slurmstepd: error\n")
    killed = replace(JOB, exit_code=0, signal=9)
    for _ in range(2):  # doing it again changes nothing
        assert settle(folder, killed, ASKED, log) == "KILLED"
        found = failure_in(folder)
        assert found["detail"] == (
            "Slurm job 12 ended (FAILED, exit code 0, signal 9) before the launcher wrote a result"
        )
        assert (found["job_id"], found["attempt"]) == (12, 0)
        assert (found["exit_code"], found["signal"]) == (None, 9)
        assert (found["asked"], found["nodes"]) == (ASKED, "node[1-2]")
        assert found["last_lines"] == [*["line"] * 19, "slurmstepd: error"]
    state = scan(tmp_path, ["a"])["a"]
    assert (state.status, state.cause, state.detail) == (Status.FAILED, "KILLED", found["detail"])
    # The accounting is complete a moment later.
    assert settle(folder, TIMEOUT, ASKED) == "TIMEOUT"
