"""The table of jobs: what each asked for, used, waited for and held."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.paths import MARKER
from scalesweep.slurm import job_table
from scalesweep.slurm.commands import job_name, logs_folder, staging_comment
from scalesweep.slurm.job_table import COLUMNS, collect, read_jobs, spent
from scalesweep.slurm.sacct import Job
from tests.fakes.slurm_jobs import JOB, TIMEOUT


class Books:
    """A site's accounting, and the folders of a campaign with runs a and b."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = Path("results/runs/site")
        self.out = folder / "results" / "jobs.csv"
        self.jobs: dict[int, Job] = {}
        self.asked: list[str] = []
        self.broken = ""

    def named(self, name: str, since: str) -> dict[int, Job]:
        assert name == job_name(self.runs)
        self.asked.append(since)
        if self.broken:
            raise UserError(self.broken)
        return self.jobs

    def noted(self, run_id: str, *job_ids: int) -> None:
        """Jobs that have begun: there are logs of them."""
        (self.folder / self.runs).mkdir(parents=True, exist_ok=True)
        (self.folder / "results" / MARKER).touch()
        folder = logs_folder(self.folder / self.runs) / run_id
        folder.mkdir(parents=True, exist_ok=True)
        (self.folder / self.runs / run_id).mkdir(exist_ok=True)
        for job_id in job_ids:
            (folder / f"{job_id}.log").touch()

    def collect(self, *run_ids: str) -> str:
        return collect(run_ids or ("a", "b"), self.runs, self.out).note

    def rows(self) -> dict[int, dict[str, Any]]:
        return {row["job_id"]: row for row in read_jobs(self.out)}


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Books:
    books = Books(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job_table, "named", books.named)
    monkeypatch.setattr(job_table, "LAG_S", 0.0)
    return books


def record(folder: Path, job_id: Any, wall_s: float, **asked: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"wall_s": wall_s, "resources": {"slurm": {"job_id": job_id, **asked}}}
    (folder / "record.json").write_text(json.dumps(content))


def test_whose_a_job_is_its_log_or_its_comment_says(books: Books) -> None:
    assert books.collect() == "" and books.rows() == {}
    books.noted("a", 12)
    comments = {
        12: "",
        13: "b",
        14: staging_comment(Path("data/x")),
        15: "",  # no comments are kept, and it never began
        16: "of_another_campaign",
    }
    books.jobs = {n: replace(JOB, job_id=n, comment=text) for n, text in comments.items()}
    (books.runs / "of_another_campaign").mkdir()
    found = spent(("a", "b"), books.runs).rows
    assert books.rows() == {}  # nothing is written
    assert books.collect() == "" and found == [*books.rows().values()]
    owners = {job_id: row["run_id"] for job_id, row in books.rows().items()}
    assert owners == {12: "a", 13: "b", 14: None, 15: None}
    # The other campaign of the folder has its own run's job, and what no run is charged with.
    books.collect("of_another_campaign")
    assert [*books.rows()] == [14, 15, 16]


def test_a_row_says_what_was_asked_used_waited_and_held(books: Books) -> None:
    books.noted("a", 12, 13, 14)
    books.jobs = {
        12: TIMEOUT,
        13: replace(JOB, job_id=13, state="COMPLETED", exit_code=0),
        14: replace(JOB, job_id=14, state="CANCELLED", started=None, elapsed_s=0, node_list=""),
    }
    record(books.runs / "a", 13, 590.25)
    assert books.collect() == ""
    rows = books.rows()
    assert list(rows[12]) == list(COLUMNS) and list(rows) == [12, 13, 14]
    assert rows[13] == {
        "job_id": 13, "run_id": "a", "state": "COMPLETED", "cause": None, "exit_code": 0,
        "partition": "main", "nodes": 2, "cpus": 48, "asked_s": 3600, "elapsed_s": 600,
        "asked_mem_bytes": 2**30, "max_rss_bytes": 2**29, "submitted": JOB.submitted,
        "started": JOB.started, "ended": JOB.ended, "wait_s": 30.0, "program_s": 590.25,
        "held_s": 9.75, "node_hours": 1200 / 3600, "node_list": "node[1-2]",
        "suspended_s": None,
    }  # fmt: skip
    assert rows[12]["cause"] == "TIMEOUT"
    # Who ran in job 12 is not known any more.
    assert rows[12]["program_s"] is None and rows[12]["held_s"] is None
    assert rows[14]["wait_s"] is None and rows[14]["node_hours"] == 0


@pytest.mark.parametrize(
    ("why", "away"), [("Slurm accounting storage is disabled", False), ("Connection refused", True)]
)
def test_without_a_word_of_accounting_there_is_a_note(books: Books, why: str, away: bool) -> None:
    books.noted("a", 12)
    os.utime(books.folder / "results" / MARKER, (1e9, 1e9))
    books.broken = f"sacct: {why}"
    assert books.collect() == f"no accounting data: sacct: {why}" and books.rows() == {}
    # Snakemake asks again, where it may answer another time.
    assert (books.out.stat().st_mtime == 0) is away and books.asked == ["2001-09-09T00:46:40"]
    assert spent(("a", "b"), books.runs).note
