"""What squeue prints, read, and how Slurm is asked."""

import re
from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.commands import LiveJob, job_name

AWAY = "Unable to contact slurm controller (connect failure)"


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


def test_slurm_is_asked_until_it_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert [pause for pause in pauses if pause >= 1] == [1, 2, 4]


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        (f"sbatch: error: Batch job submission failed: {AWAY}", True),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv", True),
        ("sacct: error: failed to open connection to host:localhost: Connection refused", True),
        ("squeue did not answer within 60 s", True),
        ("Batch job submission failed: Invalid node name specified", False),
        ("Slurm accounting storage is disabled", False),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job ...", True),
        ("sbatch: error: AssocGrpSubmitJobsLimit\n", True),
        ("sbatch: error: QOSMaxWallDurationPerJobLimit\n", False),
    ],
)
def test_what_passes_by_itself(said: str, passes: bool) -> None:
    assert commands.passes(said) is passes


def test_a_name_is_of_folder_and_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared" / "runs" / "site"
    shared.mkdir(parents=True)
    name = job_name(shared)
    assert re.fullmatch("scalesweep_[0-9a-f]{12}", name)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "results").symlink_to(tmp_path / "shared")
    monkeypatch.chdir(tmp_path / "clone")
    assert job_name(Path("results/runs/site")) == name
    names = {job_name(Path(folder, "runs", "site")) for folder in ("col_a", "col/a", "shared")}
    assert len({name, job_name(shared.with_name("other")), *names}) == 5
