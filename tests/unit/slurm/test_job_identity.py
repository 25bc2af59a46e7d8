"""Whose a Slurm job is: names of results folders, comments, the first submission."""

import re
from pathlib import Path

import pytest

from scalesweep.slurm.job_identity import (
    job_name,
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
