"""What squeue prints, read, and how Slurm is asked."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.commands import LiveJob, parse_queue
from scalesweep.slurm.job_identity import job_comment


def test_the_queue_from_wherever_jobs_were_submitted() -> None:
    text = (
        "12|RUNNING|None|scalesweep_a|rule_run_wildcards_results_runs_s_x-r1-0f\n"
        "13|PENDING|Priority|scalesweep_b|rule_stage_wildcards_a|b_train1\n"
        "14|RUNNING|None|other|rule_run_wildcards_results_runs_s_x-r1-0f\n"
        "15|RUNNING|None|bash|(null)\n"
    )
    comment = job_comment("run", "results/runs/s", "x-r1-0f")
    assert parse_queue(text) == [
        LiveJob(12, "RUNNING", "scalesweep_a", comment, "None"),
        LiveJob(13, "PENDING", "scalesweep_b", "rule_stage_wildcards_a|b_train1", "Priority"),
    ]


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
    "said",
    [
        f"sbatch: error: Batch job submission failed: {AWAY}",
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sacct: error: failed to open persistent connection to host:localhost: Connection refused",
        "squeue did not answer within 60 s",
    ],
)
def test_what_passes_by_itself(said: str) -> None:
    assert commands.is_away(said)


@pytest.mark.parametrize(
    "said",
    [
        "Batch job submission failed: Invalid node name specified",
        "Batch job submission failed: Invalid account or account/partition combination specified",
        "Slurm accounting storage is disabled",
    ],
)
def test_what_does_not(said: str) -> None:
    assert not commands.is_away(said)


def test_states_of_the_queue() -> None:
    text = (
        "7|PENDING||ReqNodeNotAvail, Reserved | for x\n8|COMPLETED|node[1-2]|None\nnoise\n"
        "9|RUNNING\n"
    )
    assert commands.parse_states(text) == {
        7: ("PENDING", "ReqNodeNotAvail, Reserved | for x", ""),
        8: ("COMPLETED", "None", "node[1-2]"),
    }


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
