"""What squeue prints, read, and how Slurm is asked."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.commands import LiveJob
from scalesweep.slurm.job_identity import job_comment


def test_the_queue_from_wherever_jobs_were_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "12|RUNNING|n1|scalesweep_a|None|rule_run_wildcards_results_runs_s_x-r1-0f\n"
        "13|PENDING||scalesweep_b|Priority|rule_stage_wildcards_a|b_train1\n"
        "15|RUNNING|n2|bash|None|(null)\nnoise\n9|RUNNING\n"
    )
    jobs = [
        LiveJob(12, "RUNNING", "scalesweep_a", job_comment("run", "results/runs/s", "x-r1-0f"),
                "None", "n1"),
        LiveJob(13, "PENDING", "scalesweep_b", "rule_stage_wildcards_a|b_train1", "Priority"),
    ]  # fmt: skip
    monkeypatch.setattr(commands, "ask", lambda *words, patience_s: text)
    assert commands.live_jobs() == jobs and [*commands.queue_states()] == [12, 13, 15]


def test_a_command_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="sbatch not found on this machine: run snakemake where"):
        commands.check_commands()
    with pytest.raises(UserError, match="squeue not found on this machine"):
        commands.ask("squeue")


AWAY = "Unable to contact slurm controller (connect failure)"


def test_slurm_is_asked_again_while_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    tries = tmp_path / "tries"
    script = tmp_path / "squeue"
    script.write_text(
        f"#!/bin/sh\necho >> {tries}\n[ $(wc -l < {tries}) -gt 3 ] && exec echo 7\n"
        f"echo 'squeue: error: {AWAY}' >&2; exit 1\n"
    )
    script.chmod(0o755)
    assert commands.ask("squeue", patience_s=60).strip() == "7"
    tries.unlink()
    # A plan does not wait, and nothing waits for what will not change.
    with pytest.raises(UserError, match="Unable to contact slurm controller"):
        commands.ask("squeue")
    script.write_text("#!/bin/sh\necho 'squeue: error: Invalid user: x' >&2; exit 1\n")
    with pytest.raises(UserError, match="Invalid user"):
        commands.ask("squeue", patience_s=60)
    assert [pause for pause in pauses if pause >= 1] == [1, 2, 5]


@pytest.mark.parametrize(
    ("said", "away"),
    [
        (f"sbatch: error: Batch job submission failed: {AWAY}", True),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv", True),
        ("sacct: error: failed to open connection to host:localhost: Connection refused", True),
        ("squeue did not answer within 60 s", True),
        ("Batch job submission failed: Invalid node name specified", False),
        ("Slurm accounting storage is disabled", False),
    ],
)
def test_what_passes_by_itself(said: str, away: bool) -> None:
    assert commands.is_away(said) is away


@pytest.mark.parametrize(
    ("said", "queued", "limit"),
    [
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job ...", 0,
         "QOSMaxSubmitJobPerUserLimit"),
        ("sbatch: error: AssocGrpSubmitJobsLimit\n", 0, "AssocGrpSubmitJobsLimit"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", 3,
         "job submit limit"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", 0,
         ""),
        ("sbatch: error: QOSMaxWallDurationPerJobLimit\n", 5, ""),
        ("sbatch: error: Invalid account", 5, ""),
    ],
)  # fmt: skip
def test_limits_of_submitted_jobs(said: str, queued: int, limit: str) -> None:
    assert commands.submit_limit(said, queued) == limit
