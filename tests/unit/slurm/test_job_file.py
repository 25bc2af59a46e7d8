"""job.json: written at submission, read by what looks for a run's jobs."""

from pathlib import Path

import pytest

from scalesweep.slurm.job_file import JOB_FILE, SubmittedJob, note_submitted, submitted_jobs
from scalesweep.slurm.job_table import job_ids


def test_jobs_of_a_run_are_kept_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert submitted_jobs(folder) == []
    jobs = [SubmittedJob(9, 1, "logs/9.log"), SubmittedJob(12, 2, "logs/12.log")]
    for job in jobs:
        note_submitted(folder, job)
    assert submitted_jobs(folder) == jobs


@pytest.mark.parametrize("text", ["", "[]", "{", '{"jobs": 3}', '{"jobs": [{"job_id": "x"}]}'])
def test_a_damaged_file_tells_of_no_job_and_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / JOB_FILE).write_text(text)
    assert submitted_jobs(tmp_path) == []
    job = SubmittedJob(3, 1, "l")
    note_submitted(tmp_path, job)
    assert submitted_jobs(tmp_path) == [job]


def test_jobs_are_found_by_the_file_and_by_logs_of_earlier_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs, logs = Path("results/runs/site"), Path("results/logs/slurm")
    note_submitted(runs / "new", SubmittedJob(21, 1, "anywhere/21.log"))
    note_submitted(runs / "both", SubmittedJob(22, 1, "x"))
    for run, number in (("old", 11), ("both", 22), ("both", 12)):
        log = logs / "rule_run" / f"results_runs_site_{run}" / f"{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    found = job_ids(logs, str(runs), ["new", "old", "both", "none"])
    assert found == {21: "new", 22: "both", 11: "old", 12: "both"}
