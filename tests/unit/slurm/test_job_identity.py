"""Whose a Slurm job is: names of results folders, comments of runs, the first submission."""

import os
import re
from pathlib import Path

import pytest

from scalesweep.slurm.job_identity import (
    SINCE,
    first_submission,
    job_comment,
    job_name,
    note_first_submission,
    run_of,
    stages_into,
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


@pytest.mark.parametrize("runs", ["results/runs/my_site", "/abs/col_a/runs/s", "r"])
def test_a_comment_names_its_run(runs: str) -> None:
    ids = {"toy-r1-0123456789ab", "a_toy-r1-0123456789ac", "toy-r1-0123456789ab.cprofile"}
    for run_id in ids:
        assert run_of(job_comment("run", runs, run_id), ids) == run_id
    assert run_of(job_comment("run", runs, "toy-r2-0123456789ab"), ids) is None
    for comment in ("", "(null)", "rule_run_", "rule_stage_wildcards_x_toy-r1-0123456789ab"):
        assert run_of(comment, ids) is None


def test_staging_is_known_by_the_folder_of_the_data(tmp_path: Path) -> None:
    where = str(tmp_path / "data" / "set").replace("/", "_")
    assert stages_into(f"rule_stage_wildcards_{where}_train8", tmp_path / "data")
    assert not stages_into(f"rule_stage_wildcards_{where}_train8", tmp_path / "dat")
    assert not stages_into(f"rule_run_wildcards_{where}_train8", tmp_path / "data")


def test_the_first_submission_is_noted_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs" / "site"
    assert first_submission(runs) is None
    note_first_submission(runs)
    os.utime(runs / SINCE, (1772352000, 1772352000))
    note_first_submission(runs)
    assert first_submission(runs) == "2026-03-01T07:00:00"  # an hour before: clocks differ
