"""Several Snakemakes at one results folder: one of them works, the others are told so or look."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import MARK, mark, marked
from scalesweep.smk import preflight
from scalesweep.smk.preflight import Preflight
from tests.conftest import Project
from tests.fakes.snakemake_calls import python
from tests.soak.launching import wait_until

CAMPAIGN = "campaign: c\nsite: toy\nexperiments: {{e: {{benchmark: toy, axes: {{size: {}}}}}}}\n"
WORDS = ("--configfile", "c.yaml")


def call(project: Project, *words: str, python: str) -> "subprocess.Popen[str]":
    """Start Snakemake in a project, on the results that all share."""
    shared = project.path.parent / "shared"
    return subprocess.Popen(
        [python, "-m", "snakemake", *words, *WORDS, "--config", f"results={shared}"],
        cwd=project.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip


def errors(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("error: ")]


@pytest.mark.slow
def test_a_second_snakemake_is_refused_and_a_killed_one_hinders_nobody(
    project: Project, tmp_path: Path
) -> None:
    project.write("c.yaml", CAMPAIGN.format("[1, 2]"))
    project.write("hold", "0")
    other = Project(shutil.copytree(project.path, tmp_path / "other"))
    runs = tmp_path / "shared" / "runs" / "toy"
    first = call(project, python=sys.executable)  # is to be killed
    wait_until(lambda: bool(list(runs.glob("*/attempt-1/*.log"))), "a run")

    second, third = call(project, python=python()), call(other, python=python())
    lookers = [call(other, word, python=python()) for word in ("plan", "--dry-run", "report")]
    for refused in (second, third):
        said = refused.communicate(timeout=120)[1]
        (line,) = errors(said)
        assert refused.returncode == 1 and "Traceback" not in said
        assert f"process {first.pid} on" in line and "is already using this results folder" in line
    for looker in lookers:
        said = looker.communicate(timeout=120)[1]
        assert looker.returncode == 0, said
    assert (tmp_path / "shared" / "report.html").exists()

    # Killed, with a run at work: the next call, at once and from elsewhere, needs no --unlock.
    first.kill()
    (other.path / "hold").unlink()
    (attempt,) = runs.glob("*/attempt-1")
    again = call(other, python=python())
    first.communicate(timeout=60)
    said = again.communicate(timeout=120)[1]
    assert again.returncode == 0, said
    attempts = sorted(path.name for path in attempt.parent.glob("attempt-*"))
    assert attempts == ["attempt-1", "attempt-2"]
    assert (attempt.parent / "record.json").exists()


@pytest.mark.slow
def test_ctrl_c_while_the_campaign_is_read_is_one_line(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN.format("[1]"))
    startup = project.path / "scalesweep" / "smk" / "startup.py"
    whole, then = startup.read_text(), "    options = read_options("
    assert then in whole
    startup.write_text(whole.replace(then, f"    __import__('os').kill(0, 2)\n{then}"))
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *WORDS], cwd=project.path, check=False, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": ""}, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert errors(done.stderr) == [
        "error: interrupted while the campaign was read: nothing was started"
    ]
    assert not (project.path / "results").exists()


@pytest.mark.slow
def test_a_record_outlives_the_failure_of_its_job(project: Project) -> None:
    launch = project.path / "scalesweep" / "commands" / "launch.py"
    # Killed between its record and its end, which are milliseconds apart.
    whole, then = launch.read_text(), "    if marker and (code == 0 or forgive):\n"
    assert then in whole
    launch.write_text(whole.replace(then, f"    import os\n    os.kill(os.getpid(), 9)\n{then}"))
    said = project.campaign(CAMPAIGN.format("[1]"), "--until", "run", code=1)
    assert "a job execution failed" in said
    (record,) = project.path.glob("results/runs/toy/*/record.json")
    launch.write_text(whole)
    project.campaign(CAMPAIGN.format("[1]"), "--until", "run")  # has nothing to run
    assert [path.name for path in record.parent.glob("attempt-*")] == ["attempt-1"]


# In a process of its own each would end with it.
def make_preflight(tmp_path: Path, away: bool = False) -> Preflight:
    campaign = SimpleNamespace(results=tmp_path, runs_folder=tmp_path / "runs")
    context: Any = SimpleNamespace(campaign=campaign, away=away)
    return Preflight(context, begun=True)


def end(preflight: Preflight) -> None:
    while preflight.held:
        preflight.held.popitem()[1].close()


def test_who_makes_runs_and_who_reports_do_not_hinder_each_other(tmp_path: Path) -> None:
    one, two, three = (make_preflight(tmp_path) for _ in range(3))
    one.claim_runs()
    two.claim_report()
    with pytest.raises(
        UserError, match=f"process {os.getpid()} on .* is already using this results"
    ):
        three.claim_runs()
    # The first waits with its own report for the end of the other's.
    waiting = threading.Thread(target=one.claim_report)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    end(two)
    waiting.join(20)
    assert not waiting.is_alive()
    end(one)


def test_nothing_is_measured_beside_a_launcher_of_an_earlier_snakemake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process is the launcher.
    environment = {**os.environ, MARK: mark(tmp_path / "runs" / "a" / "attempt-1")}
    program = subprocess.Popen(["sleep", "600"], env=environment)
    while not marked(tmp_path / "runs"):  # the kernel shows its variables a moment later
        time.sleep(0.01)
    refused, slurm, one = (make_preflight(tmp_path, away) for away in (False, True, False))
    try:
        monkeypatch.setattr(preflight, "LEFTOVERS_S", 0.2)
        with pytest.raises(UserError, match=f"a is still being measured by process {os.getpid()}"):
            refused.claim_runs()
        end(refused)
        slurm.claim_runs()  # of its jobs Slurm tells
        end(slurm)
        monkeypatch.setattr(preflight, "LEFTOVERS_S", 30.0)
        threading.Timer(0.3, program.kill).start()
        one.claim_runs()
    finally:
        program.kill()
        program.wait()
        end(one)
