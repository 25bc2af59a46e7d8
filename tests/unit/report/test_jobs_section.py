"""The report's section on Slurm jobs."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.fakes.pages import HOSTILE, outline, render, visible
from tests.fakes.results import SITE, Fake, make_results, write_jobs


def jobs_part(page: str) -> str:
    return page[page.index('id="jobs">') : page.index('id="methods">')]


def test_jobs_are_told_by_what_they_asked_for(tmp_path: Path) -> None:
    root = make_results(tmp_path, [Fake("e", {"a": [1, 2]}, repeats=1)])
    timeout = {"state": "TIMEOUT", "cause": "TIMEOUT", "elapsed_s": 3600, "held_s": None}
    write_jobs(
        root, {}, {"elapsed_s": 700, "held_s": 30.0, "wait_s": 100.0}, timeout | {"node_hours": 4},
        {"nodes": 1024, "cpus": 24576, "asked_s": None, "max_rss_bytes": None, "wait_s": 7200.0},
        {"state": "CANCELLED", "cause": "CANCELLED", "started": None},
        {"state": "RUNNING", "ended": None, "partition": "long"},
    )  # fmt: skip
    page = render(root)
    found = outline(page)
    assert found.ths_without_scope == 0 and "./jobs.csv" in found.hrefs
    part = jobs_part(page)
    text = visible(part)
    assert (
        "6 Slurm jobs in partitions long and normal: 3 completed, 1 TIMEOUT, 1 CANCELLED and "
        "1 not finished yet. Wait in the queue: median 1 min 00 s, at most 2 h 00 min. "
        "A completed job held its nodes for a median of 20 s outside the benchmark program."
    ) in text
    assert "sampled for the largest single task, not the sum over the tasks" in text
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", part)
    four, many, total = ([*map(visible, re.findall(r"<t[hd].*?</t[hd]>", row))] for row in rows)
    assert four == [
        *("4", "96", "3", "1 TIMEOUT", "1 h 00 min", "11 min 40 s", "1 h 00 min"),
        *("64.0", "3.00", "12.0", "5.33", "1 min 00 s", "25 s"),
    ]
    assert many[:5] == ["1,024", "24,576", "1", "–", "–"] and many[8:10] == ["–", "–"]
    # No limit of one means no sum of what was asked for.
    assert total == ["All", "4", "", "–", "6.00", ""]


def test_strange_words_of_slurm_are_text(tmp_path: Path) -> None:
    root = make_results(tmp_path, [Fake("e", {"a": [1]}, repeats=1)])
    write_jobs(root, {"nodes": 8}, {"partition": HOSTILE, "cause": HOSTILE, "state": "FAILED"})
    page = render(root)
    found = outline(page)
    assert "script" not in found.tags and "onerror" not in found.attributes
    text = visible(jobs_part(page))
    assert HOSTILE in text


@pytest.mark.slow
def test_no_jobs_no_section(tmp_path: Path) -> None:
    root = make_results(tmp_path, [Fake("e", {"a": [1]}, repeats=1)])
    without = render(root)
    write_jobs(root)
    for text in (without, render(root)):
        assert "#jobs" not in text and 'id="jobs"' not in text and "jobs.csv" not in text
    write_jobs(root, {"state": "PENDING", "started": None, "ended": None, "wait_s": None})
    text = visible(jobs_part(render(root)))
    assert "1 Slurm job in partition normal: 0 completed and 1 not finished yet." in text
    assert "Nodes" not in text and "Wait" not in text


def test_a_failure_names_its_job(tmp_path: Path) -> None:
    fake = Fake("e", {"a": [1, 2]}, repeats=1, fate=lambda p, r: "TIMEOUT")
    root = make_results(tmp_path, [fake])
    early, late = sorted((root / "runs" / SITE).glob("*/failure.json"))
    # One whose launcher never began, so that the logs there are another job's.
    for path, told in ((early, {"job_id": 7, "attempt": 0}), (late, {"job_id": 8})):
        path.write_text(json.dumps(json.loads(path.read_bytes()) | told))
    page = render(root)
    text = visible(page)
    assert f"{early.parent.name} (repeat 0, job 7)" in text
    assert f"{late.parent.name} (repeat 0, attempt 1, job 8) stderr" in text
    assert page.count("stderr.log") == 2  # with the failure, and in the table of runs


def test_an_accounting_that_did_not_answer_is_told(tmp_path: Path) -> None:
    root = make_results(tmp_path, [Fake("e", {"a": [1]}, repeats=1)])
    write_jobs(root)
    os.utime(root / "jobs.csv", (0, 0))
    assert "did not answer: jobs are missing here" in visible(jobs_part(render(root)))
