"""What squeue prints, read, and how Slurm is asked."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.commands import LiveJob

AWAY = "Unable to contact slurm controller (connect failure)"
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


def test_the_queue_from_wherever_jobs_were_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "12|RUNNING|n1|scalesweep_a|None|x-r1-0f\n13|PENDING||scalesweep_b|Priority|stage /a|b\n"
        "15|RUNNING|n2|bash|None|(null)\nnoise\n9|RUNNING\n"
    )
    jobs = [
        LiveJob(12, "RUNNING", "scalesweep_a", "x-r1-0f", "None", "n1"),
        LiveJob(13, "PENDING", "scalesweep_b", "stage /a|b", "Priority"),
    ]
    monkeypatch.setattr(commands, "ask", lambda *words, patience_s: text)
    assert commands.live_jobs() == jobs and [*commands.queue_states()] == [12, 13, 15]


def test_slurm_is_asked_again_while_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    tries, script = tmp_path / "tries", tmp_path / "squeue"
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
    ("said", "queued", "passes"),
    [
        (f"sbatch: error: Batch job submission failed: {AWAY}", 0, True),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv", 0, True),
        ("sacct: error: failed to open connection to host:localhost: Connection refused", 0, True),
        ("squeue did not answer within 60 s", 0, True),
        ("Batch job submission failed: Invalid node name specified", 0, False),
        ("Slurm accounting storage is disabled", 0, False),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job ...", 0, True),
        ("sbatch: error: AssocGrpSubmitJobsLimit\n", 0, True),
        (POLICY, 3, True),
        (POLICY, 0, False),
        ("sbatch: error: QOSMaxWallDurationPerJobLimit\n", 5, False),
    ],
)
def test_what_passes_by_itself(said: str, queued: int, passes: bool) -> None:
    assert commands.passes(said, queued) is passes
