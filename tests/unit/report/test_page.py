"""The report: whole, self-contained, honest about holes, and small."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

from scalesweep.analysis.table_io import write_parquet
from scalesweep.core.plan_format import read_plan
from scalesweep.core.visible import INVISIBLE
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report import experiment_part
from scalesweep.report.experiment_part import failed_points
from scalesweep.report.inputs import PageInputs, links_from
from scalesweep.report.page import glance, page_content
from tests.fakes import pages
from tests.fakes.imported_table import LAYOUT_ROWS, LAYOUTS, imported
from tests.fakes.pages import outline, render, visible
from tests.fakes.results import SITE, Fake, demo, make_results, studies_of, write_jobs


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_results(tmp_path_factory.mktemp("report"))
    (root / "plan.csv").write_text("")
    return root


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return render(root)


@pytest.mark.slow
def test_page_is_well_formed_and_self_contained(root: Path, page: str) -> None:
    every = [*outline(page).iter()]
    ids = [each.get("id") for each in every if each.get("id")]
    assert len(ids) == len(set(ids))
    assert all(each.get("scope") for each in every if each.tag == "th")
    assert not {"script", "img", "link", "iframe", "object"} & {each.tag for each in every}
    attributes = {name for each in every for name in each.attrib}
    assert not any(re.match("src|data$|on", name) for name in attributes)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert [each.tag for each in every].count("h1") == 1
    for href in (str(each.get("href")) for each in every if each.tag == "a"):
        if href.startswith("#"):
            assert href[1:] in ids
        else:
            assert href.startswith("./")
            assert (root / unquote(href)).exists(), href


@pytest.mark.slow
def test_what_a_reader_looks_for_is_there(page: str) -> None:
    assert re.findall(r"<h2>(.*?)</h2>", page) == [fake.name for fake in demo()]
    text = visible(page)
    for words in (
        "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz, 24 cores",
        "187 of 206 runs done , 7 failed, 12 pending",
        "io_weak_scaling 1,024 ranks 85.1 %; the largest run barrier 11 %",
        "NODE_FAIL 512 ranks: made up: NODE_FAIL",
        "one thread cannot feed 48: 1 point (inter_threads 1, intra_threads 48)",
        "tensorflow (simulated): 2.18.1 (26 runs) and 2.17.0 (3 runs)",
        "with local changes (10 runs)",
        "affinity of ranks 0-11",
    ):
        assert words in text
    # Rows are at their place among the rank counts; a hole has its cause and no number.
    table = page.partition('id="e1-points"')[2].partition("</table>")[0]
    rows = re.findall(r'<tr><th scope="row"[^>]*>(\d+)</th>(.*?)</tr>', table)
    assert [rank for rank, _ in rows] == [str(2**i) for i in range(11)]
    assert "0/3 NODE_FAIL" in rows[9][1] and rows[9][1].count("–") == 8
    # A line may break before an interval, but nowhere in it. Cells sort by all digits.
    assert re.search(r"[\d,]+ \[[\d,]+,\xa0[\d,]+\]", rows[10][1])
    bad = r'class="num bad" data-order="0\.4\d{6,}">47\.\d \[[\d.]+,\xa0[\d.]+\]\xa0%'
    assert re.search(bad, rows[10][1])


@pytest.mark.slow
def test_the_terminal_says_what_the_first_table_says(root: Path) -> None:
    plan = read_plan(root / "plan.json")
    summary = pd.read_parquet(root / "summary.parquet")
    folders = (root / "tables", root / "figures", root / "runs" / SITE, root / "report.html")
    lines = glance(page_content(plan, [*studies_of(root).values()], summary, *folders))
    said = "run at 1,024 ranks; 85.1 %; the largest run; barrier 11 % at 1,024"
    assert lines[0] == f"io_weak_scaling  {said} (scale clear; loss open)"
    assert len(lines) == 7 and lines[-1] == "and 1 more"


ONE = Fake("e", {"a": [1, 2]}, repeats=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fake", "campaign", "said"),
    [
        (replace(ONE, axes={"ranks": [1, 2]}, scaling="weak", repeats=3,
                 fate=lambda p, r: "TIMEOUT" if r else "new"), "c",
         ["No run has finished yet", "0 of 6 runs done , 4 failed, 2 pending", "TIMEOUT 1 rank"]),
        (replace(ONE, axes={"a": [1]}, source="imported"), "mine",
         ["mine", "Published results", "(imported)"]),
        # What importers call every campaign is no name: the page names what was measured.
        (replace(ONE, source="imported"), "imported", ["data_loading Published results"]),
    ],
)  # fmt: skip
def test_little_is_said_as_is(tmp_path: Path, fake: Fake, campaign: str, said: list[str]) -> None:
    page = render(make_results(tmp_path, [fake], campaign=campaign))
    outline(page)
    for words in said:
        assert words in visible(page)


@pytest.mark.slow
def test_a_failure_names_its_job_and_where_its_ranks_stood(tmp_path: Path) -> None:
    root = make_results(tmp_path, [replace(ONE, fate=lambda p, r: "HANG")])
    early, late = sorted((root / "runs" / SITE).glob("*/failure.json"))
    stacks = [
        {"ranks": "1", "count": 1, "where": "<script>:3 f < g", "phase": "timed", "still_s": 41.0},
        {"ranks": "", "count": 2, "where": "left nothing", "phase": None, "still_s": None},
    ]
    # One whose launcher never began, so that the logs there are another job's.
    for path, more in ((early, {"job_id": 7, "attempt": 0}), (late, {"job_id": 8})):
        path.write_text(json.dumps(json.loads(path.read_bytes()) | more | {"stacks": stacks}))
    page = render(root)
    outline(page)
    text = visible(page)
    assert f"{early.parent.name} (repeat 0, job 7)" in text
    assert f"{late.parent.name} (repeat 0, attempt 1, job 8) stderr" in text
    assert "timed 41 s <script>:3 f < g 2 without numbers – – left nothing" in text
    assert "<script>:3" not in page


@pytest.mark.slow
def test_what_cannot_be_seen_is_shown(tmp_path: Path) -> None:
    """Scripts in names: tests/acceptance/test_page.py."""
    bidi = "\x1b[31mred\u202eder\u2066\x9b\x07<i>"
    fake = Fake("e", {"mode": ["a", bidi]}, repeats=2,
                fate=lambda p, r: "done" if p["mode"] == "a" or r else bidi,
                description=bidi, environment=lambda p, r: {bidi: bidi})  # fmt: skip
    root = make_results(tmp_path, [fake], lines=[bidi])
    write_jobs(root, {"cause": bidi, "state": "FAILED"})
    page = render(root)
    outline(page)
    assert page.count("\\x1b[31mred\\u202eder") >= 3
    whole = (root / "report.html").read_text()
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', whole, re.DOTALL)
    assert data and not any(re.search(rf"<|\\u001b|{INVISIBLE.pattern}", text) for text in data)
    assert not INVISIBLE.search(page)
    assert not any(INVISIBLE.search(path.read_text()) for path in root.glob("figures/*/*.svg"))


def test_rows_of_failed_runs_of_a_source_are_points_with_their_cause(tmp_path: Path) -> None:
    plan, entry, tables = imported(tmp_path, LAYOUT_ROWS, LAYOUTS)
    page = PageInputs(plan, 1, tmp_path, tmp_path, tmp_path, links_from(tmp_path), {}, [])
    rows = failed_points(page, ExperimentResults(entry, tables))
    assert len(rows) == 3 and not any(run["run"]["to_run"] for run in rows[0]["runs"])
    assert (rows[0]["cause"], rows[0]["detail"]) == ("GPU_OUT_OF_MEMORY", "column status: oom")


def test_failed_runs_beyond_the_causes_that_are_shown_are_counted(tmp_path: Path) -> None:
    causes = ("TIMEOUT", "HANG", "KILLED", "BAD_RESULT", "NON_ZERO_EXIT", "OUT_OF_MEMORY")
    fake = Fake("e", {"a": [*range(6)]}, repeats=1, fate=lambda p, r: causes[p["a"]])
    text = visible(render(make_results(tmp_path, [fake]), figures=False))
    assert "2 more failed runs" in text and "No run has finished yet." in text


def test_a_run_without_facts_is_counted_not_fatal(tmp_path: Path) -> None:
    root = make_results(tmp_path, [ONE])
    summary = pd.read_parquet(root / "summary.parquet")
    summary["_facts"] = [None, *summary["_facts"][1:]]
    write_parquet(summary, root / "summary.parquet", {})
    text = visible(render(root, figures=False))
    assert "1 record could not be read" in text and "done: record cannot be read" in text


@pytest.mark.slow
def test_page_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake("e", {"a": list(range(30)), "b": list(range(10))}, repeats=1,
                fate=lambda p, r: "TIMEOUT" if p["a"] > 13 else "done")  # fmt: skip
    root = make_results(tmp_path, [fake], lines=["x" * 5000] * 100)
    monkeypatch.setattr(experiment_part, "MAX_ROWS", 60)
    monkeypatch.setattr(pages, "write_figures", lambda *_: None)
    page = render(root)
    text = visible(page)
    assert "240 rows more: in the CSV files" in text
    assert "300 runs, with records" in text and "240 runs more: in runs.csv" in text
    assert "110 failed points more: see plan.csv" in text
    assert len(page) < 800_000


@pytest.mark.slow
def test_jobs_are_told_in_a_paragraph(tmp_path: Path) -> None:
    root = make_results(tmp_path, [ONE])
    assert 'id="jobs"' not in render(root, figures=False)
    timeout = {"state": "TIMEOUT", "cause": "TIMEOUT", "elapsed_s": 3600, "held_s": None}
    write_jobs(
        root, {}, {"elapsed_s": 700, "held_s": 30.0, "wait_s": 100.0}, timeout | {"node_hours": 4},
        {"nodes": 1024, "cpus": 24576, "asked_s": None, "max_rss_bytes": None, "wait_s": 7200.0},
        {"state": "CANCELLED", "cause": "CANCELLED", "started": None},
        {"state": "RUNNING", "ended": None, "partition": "long"},
    )  # fmt: skip
    assert (
        "6 Slurm jobs: 3 completed, 1 TIMEOUT, 1 CANCELLED, 1 not finished yet. "
        "Wait in the queue: median 1 min 00 s. "
        "A completed job held its nodes for a median of 20 s outside the benchmark program. "
        "They used 6.67 node-hours."
    ) in visible(render(root, figures=False))
    os.utime(root / "jobs.csv", (0, 0))
    assert "did not answer: jobs are missing here" in visible(render(root, figures=False))
