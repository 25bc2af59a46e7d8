"""The table of jobs: what each asked for, used, waited for and held."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core.errors import UserError
from scalesweep.slurm import job_table
from scalesweep.slurm.failure import settle
from scalesweep.slurm.job_identity import (
    job_comment,
    job_name,
    logs_folder,
    note_first_submission,
)
from scalesweep.slurm.job_table import (
    COLUMNS,
    collect,
    overhead_s,
    read_jobs,
    shapes_used,
    spent,
)
from scalesweep.slurm.sacct import Job
from tests.fakes.plan import whole_plan
from tests.fakes.scripts import run_script
from tests.fakes.slurm_jobs import ASKED, JOB, TIMEOUT, by_launcher


class Books:
    """A site's accounting, and the folders of a campaign with runs a and b."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = Path("results/runs/site")
        self.out = folder / "results" / "jobs.csv"
        self.jobs: dict[int, Job] = {}
        self.asked: list[list[int]] = []
        self.broken = ""
        # What the accounting has under the name of these jobs: id -> comment.
        self.named: dict[int, str] = {}

    def jobs_named(self, name: str, since: str) -> dict[int, str]:
        assert name == job_name(self.runs) and since.startswith("20")
        return self.named

    def query(self, ids: Sequence[int]) -> dict[int, Job]:
        self.asked.append(list(ids))
        if self.broken:
            raise UserError(self.broken)
        return {number: self.jobs[number] for number in ids if number in self.jobs}

    def noted(self, run_id: str, *job_ids: int) -> None:
        """Jobs that have begun: the accounting has their names, and there are logs of them."""
        note_first_submission(self.folder / self.runs)
        folder = logs_folder(self.folder / self.runs) / "rule_run" / f"results_runs_site_{run_id}"
        folder.mkdir(parents=True, exist_ok=True)
        for job_id in job_ids:
            (folder / f"{job_id}.log").touch()
            self.named[job_id] = ""

    def collect(self, *run_ids: str) -> list[str]:
        return collect(run_ids or ("a", "b"), self.runs, self.out).notes

    def rows(self) -> dict[int, dict[str, Any]]:
        return {row["job_id"]: row for row in read_jobs(self.out)}


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Books:
    books = Books(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job_table, "query", books.query)
    monkeypatch.setattr(job_table, "named", books.jobs_named)
    return books


def record(folder: Path, job_id: Any, wall_s: float, **asked: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = {"wall_s": wall_s, "resources": {"slurm": {"job_id": job_id, **asked}}}
    (folder / "record.json").write_text(json.dumps(content))


def test_whose_a_job_is_its_log_or_its_comment_says(books: Books) -> None:
    assert books.collect() == ["no job was submitted for this campaign"]
    books.noted("a", 12)
    books.jobs = {number: replace(JOB, job_id=number) for number in range(12, 17)}
    books.named |= {
        13: job_comment("run", "/another/way/to/results/runs/site", "b"),
        14: "rule_stage_wildcards_data_x_train8",
        15: "",  # no comments are kept, and it never began
        16: job_comment("run", "results/runs/site", "of_another_campaign"),
    }
    found = spent(("a", "b"), books.runs, books.out)
    assert list(books.rows()) == []  # nothing is written
    assert books.collect() == []
    rows = books.rows()
    assert [row["node_hours"] for row in found.rows] == [r["node_hours"] for r in rows.values()]
    owners = {job_id: row["run_id"] for job_id, row in rows.items()}
    assert owners == {12: "a", 13: "b", 14: None, 15: None}
    assert sum(row["node_hours"] for row in rows.values()) == pytest.approx(4 * 1200 / 3600)
    # The other campaign of the folder has its own run's job, and what no run is charged with.
    books.collect("of_another_campaign")
    assert list(books.rows()) == [14, 15, 16]


def test_a_row_says_what_was_asked_used_waited_and_held(books: Books) -> None:
    books.noted("a", 12, 13, 14)
    books.jobs = {
        12: TIMEOUT,
        13: replace(JOB, job_id=13, state="COMPLETED", exit_code=0),
        14: replace(JOB, job_id=14, state="CANCELLED", started=None, elapsed_s=0, node_list=""),
    }
    record(books.runs / "a", 13, 590.25)
    assert books.collect() == []
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


def test_the_time_of_a_failed_program(books: Books) -> None:
    books.noted("a", 12)
    books.noted("b", 15)
    books.jobs = {12: JOB, 15: replace(TIMEOUT, job_id=15)}
    by_launcher(books.runs / "a")
    settle(books.runs / "b", "b", books.jobs[15], ASKED)
    books.collect()
    rows = books.rows()
    assert (rows[12]["cause"], rows[12]["program_s"]) == ("NON_ZERO_EXIT", 585.5)
    assert rows[12]["held_s"] == 14.5
    # The launcher was killed: its program's time is not the job's.
    assert (rows[15]["cause"], rows[15]["program_s"]) == ("TIMEOUT", None)


def test_only_jobs_that_were_not_over_are_asked_for_again(books: Books) -> None:
    books.noted("a", 12, 13, 14, 16)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    books.jobs = {
        12: JOB,
        13: replace(JOB, job_id=13, state="RUNNING", ended=None),
        14: replace(JOB, job_id=14, ended=now, max_rss_bytes=None),
    }
    assert books.collect() == ["1 of 4 jobs not in Slurm's accounting"]
    books.jobs[13] = replace(JOB, job_id=13)
    books.jobs[14] = replace(books.jobs[14], max_rss_bytes=5)
    books.out.unlink()  # as Snakemake does
    books.collect()
    assert books.asked == [[12, 13, 14, 16], [13, 14, 16]]
    rows = books.rows()
    assert list(rows) == [12, 13, 14]
    assert (rows[13]["state"], rows[14]["max_rss_bytes"]) == ("FAILED", 5)
    # Without the hidden copy the table itself is believed.
    (books.out.parent / ".jobs.csv.previous").unlink()
    books.collect()
    assert books.asked[-1] == [16]


@pytest.mark.parametrize(
    ("why", "away"),
    [("Slurm accounting storage is disabled", False), ("Connection refused", True)],
)
def test_rows_stay_when_the_accounting_does_not_answer(books: Books, why: str, away: bool) -> None:
    books.noted("a", 12)
    books.jobs = {12: JOB}
    books.collect()
    books.noted("b", 15)
    books.broken = f"sacct: {why}"
    books.out.unlink()
    assert books.collect() == [f"no accounting data: sacct: {why}"]
    assert list(books.rows()) == [12]
    # Snakemake asks again, where it may answer another time.
    assert (books.out.stat().st_mtime == 0) is away
    assert spent(("a", "b"), books.runs, books.out).blind


def test_rows_of_another_campaign_come_back(books: Books) -> None:
    books.noted("a", 12)
    books.noted("b", 15)
    books.jobs = {12: JOB, 15: replace(JOB, job_id=15)}
    books.collect("a", "b")
    books.collect("b")
    assert list(books.rows()) == [15]
    books.collect("a", "b")
    assert list(books.rows()) == [12, 15] and books.asked[-1] == []


def test_strange_records_and_tables_are_no_obstacle(books: Books) -> None:
    books.noted("a", 12)
    books.jobs = {12: JOB}
    books.out.parent.mkdir(exist_ok=True)
    books.out.write_text("job_id,run_id\nx,y\n")
    for resources in ([], {"slurm": None}, {"slurm": "12"}):
        (books.runs / "a").mkdir(parents=True, exist_ok=True)
        (books.runs / "a" / "record.json").write_text(json.dumps({"resources": resources}))
        assert books.collect() == []
    assert books.rows()[12]["program_s"] is None
    books.out.write_text("job_id,run_id\nx,y\n")
    with pytest.raises(UserError, match="not a table of jobs"):
        read_jobs(books.out)


def test_shapes_and_overhead(books: Books) -> None:
    books.noted("a", *range(20, 27))
    for number, elapsed in enumerate((600, 610, 640), start=20):
        books.jobs[number] = replace(JOB, job_id=number, state="COMPLETED", elapsed_s=elapsed)
    books.jobs[23] = replace(TIMEOUT, job_id=23, elapsed_s=3600, max_rss_bytes=2**30)
    books.jobs[24] = replace(JOB, job_id=24, nodes=1, limit_s=None, max_rss_bytes=None)
    books.jobs[25] = replace(JOB, job_id=25, state="RUNNING", ended=None)
    books.jobs[26] = replace(JOB, job_id=26, state="CANCELLED", started=None)
    books.collect()
    rows = read_jobs(books.out)
    assert overhead_s(rows) is None
    for row in rows:
        row["held_s"] = row["elapsed_s"] - 590.0
    assert overhead_s(rows) == 20
    one, two = shapes_used(rows)
    assert (one.nodes, one.asked_s, one.asked_node_hours, one.max_rss_bytes) == (1, None) + (
        None,
    ) * 2
    assert (one.causes, one.held_s) == ({"FAILED": 1}, None)
    assert (two.nodes, two.cpus, two.asked_s, two.asked_mem_bytes) == (2, 48, 3600, 2**30)
    assert (two.jobs, two.causes, two.used_s, two.used_s_max) == (4, {"TIMEOUT": 1}, 625, 3600)
    assert (two.max_rss_bytes, two.asked_node_hours, two.wait_s) == (2**30, 8, 30)
    assert two.node_hours == pytest.approx(2 * 5450 / 3600)
    assert two.held_s == 20
    assert shapes_used([]) == []


def account(folder: Path, path: str) -> subprocess.CompletedProcess[str]:
    words = ["--plan", "plan.json", "--runs", "results/runs/site", "--out", "results/jobs.csv"]
    return run_script("accounting.py", *words, cwd=folder, env={"PATH": path})


def test_command_line(tmp_path: Path) -> None:
    early = account(tmp_path, "/nowhere")
    assert early.returncode == 1 and early.stderr.startswith("error: ")
    plan = {"experiments": [{"runs": [{"run_id": "a"}]}, {"runs": [{"run_id": "a"}]}]}
    (tmp_path / "plan.json").write_text(json.dumps(whole_plan(plan)))
    done = account(tmp_path, "/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "accounting: no job was submitted for this campaign\n0 jobs in results/jobs.csv\n"
    )
    out = tmp_path / "results" / "jobs.csv"
    assert out.read_text() == ",".join(COLUMNS) + "\n"
    Books(tmp_path).noted("a", 12)
    done = account(tmp_path, "/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "accounting: no accounting data: sacct: not found on this machine\n"
    )
    # Rows are what a job used and are read back as written.
    sacct = tmp_path / "bin" / "sacct"
    sacct.parent.mkdir()
    line = "12|COMPLETED|0:0|2026-03-01T08:00:00|2026-03-01T08:00:01|2026-03-01T08:00:09"
    sacct.write_text(f"#!/bin/sh\necho '{line}|8|5|1|2|n1|main|1024K|||'\n")
    sacct.chmod(0o755)
    done = account(tmp_path, str(sacct.parent))
    assert (done.returncode, done.stdout) == (0, "1 job in results/jobs.csv\n")
    assert read_jobs(out)[0]["node_hours"] == 8 / 3600


@pytest.mark.parametrize("wall_s", [10**400, "long", None, True, [1]])
def test_a_record_that_says_nonsense_of_its_time_is_no_hindrance(
    tmp_path: Path, wall_s: Any
) -> None:
    record = {
        "wall_s": wall_s,
        "ended": "0001-01-01",
        "resources": {"slurm": {"job_id": JOB.job_id}},
    }
    (tmp_path / "record.json").write_text(json.dumps(record))
    job = replace(JOB, started="0001-01-01")
    assert job_table._launcher_notes(tmp_path, job) == (None, "")
