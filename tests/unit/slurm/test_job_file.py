"""job.json: written at submission, read by what looks for a run's jobs."""

from pathlib import Path

import pytest

from scalesweep.slurm.job_file import JOB_FILE, SubmittedJob, note_submitted, submitted_jobs


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
