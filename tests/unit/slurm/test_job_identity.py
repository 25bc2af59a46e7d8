"""Whose a Slurm job is: names of results folders, comments, the first submission."""

import os
import re
from pathlib import Path

import pytest

from scalesweep.slurm.job_identity import (
    SINCE,
    first_submission,
    is_run,
    job_name,
    note_first_submission,
    stages_into,
    staging_comment,
)


def test_a_name_is_of_the_real_folder_and_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_staging_is_known_by_the_folder_of_the_data(tmp_path: Path) -> None:
    comment = staging_comment(tmp_path / "data" / "set")
    assert stages_into(comment, tmp_path / "data") and not is_run(comment)
    assert not stages_into(comment, tmp_path / "dat") and is_run("toy-r1-0123456789ab")


def test_the_first_submission_is_noted_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs" / "site"
    assert first_submission(runs) is None
    note_first_submission(runs)
    os.utime(runs / SINCE, (1772352000, 1772352000))
    note_first_submission(runs)
    assert first_submission(runs) == "2026-03-01T07:00:00"  # an hour before: clocks differ
