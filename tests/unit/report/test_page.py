"""The report: whole, self-contained, honest about holes, and small."""

import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest

from scalesweep.core.formatting import as_given, duration, listed, number, percent, with_interval
from scalesweep.core.plan_format import read_plan
from scalesweep.core.rank_columns import by_column
from scalesweep.experiment.load import load_results
from scalesweep.report import experiment_part
from scalesweep.report.page import glance, page_content
from scalesweep.tables.provenance import RunFacts, differences, group, run_facts
from scalesweep.tables.summary import write_summary
from tests.fakes.pages import HOSTILE, bare, outline, render, visible
from tests.fakes.results import SITE, Fake, demo, make_results, write_jobs
from tests.fakes.scripts import run_script


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_results(tmp_path_factory.mktemp("report"))
    (root / "plan.csv").write_text("")
    render(root)
    return root


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return bare((root / "report.html").read_text())


@pytest.mark.slow
def test_page_is_well_formed_and_self_contained(page: str) -> None:
    found = outline(page)
    assert len(found.ids) == len(set(found.ids))
    assert found.ths_without_scope == 0
    assert not {"script", "img", "link", "iframe", "object"} & set(found.tags)
    assert found.sources == [] and not any(name.startswith("on") for name in found.attributes)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert found.tags.count("h1") == 1
    assert page.count('role="img"') == found.tags.count("svg") + 1 > 10


def test_every_link_leads_somewhere(root: Path, page: str) -> None:
    found = outline(page)
    for href in found.hrefs:
        if href.startswith("#"):
            assert href[1:] in found.ids
        else:
            assert href.startswith("./")
            assert (root / unquote(href)).exists(), href


def test_findings_come_first(page: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [fake.name for fake in demo()]
    assert "io_weak_scaling 1,024 ranks 85.1 %, the largest run barrier 11 %" in visible(page)


def test_the_terminal_says_what_the_first_table_says(root: Path) -> None:
    plan = read_plan(root / "plan.json")
    studies = [load_results(entry, root / "tables") for entry in plan["experiments"]]
    summary = pd.read_parquet(root / "summary.parquet")
    folders = (root / "tables", root / "figures", root / "runs" / SITE, root / "report.html")
    lines = glance(page_content(plan, studies, summary, *folders))
    said = "run at 1,024 ranks; 85.1 %, the largest run; barrier 11 % (clear)"
    assert lines[0] == f"io_weak_scaling  {said}"
    assert len(lines) == 7 and lines[-1] == "and 1 more"


def test_header_and_coverage(page: str) -> None:
    text = visible(page)
    assert "cosmoflow_io" in text and SITE in text
    assert "Intel(R) Xeon(R) CPU E5-2690 v3 @ 2.60GHz, 24 cores" in text
    assert "187 of 206 runs done , 7 failed, 12 pending" in text
    assert "2026-03-01 to 2026-03-06" in text


def test_failures_exclusions_and_holes_are_told(page: str) -> None:
    text = visible(page)
    assert "NODE_FAIL 512 ranks: made up: NODE_FAIL" in text
    assert "error: OUT_OF_MEMORY" in text
    assert "one thread cannot feed 48: 1 point (inter_threads 1, intra_threads 48)" in text
    row = re.search(r'<tr><th scope="row">512</th>(.*?)</tr>', page)
    assert row is not None
    assert "0/3 NODE_FAIL" in row[1] and row[1].count("–") == 6
    # At its place among the rank counts.
    order = re.findall(r'<tr><th scope="row">(\d+)</th>', page)
    assert order[:11] == [str(2**i) for i in range(11)]


def test_values_have_intervals_and_low_efficiency_is_marked(page: str) -> None:
    row = re.search(r'<tr><th scope="row">1024</th>(.*?)</tr>', page)
    assert row is not None
    # A line may break before an interval, but nowhere in it.
    assert re.search(r"[\d,]+ \[[\d,]+,\xa0[\d,]+\]", row[1])
    assert re.search(r'class="num bad">47\.\d \[[\d.]+,\xa0[\d.]+\]\xa0%', row[1])


def test_unlike_environments_are_flagged(page: str) -> None:
    section = page[page.index('id="e1"') : page.index('id="e2"')]
    assert "different environments" in section
    text = visible(section)
    assert "tensorflow (simulated): 2.18.1 (26 runs) and 2.17.0 (3 runs)" in text
    assert "with local changes (10 runs)" in text
    reads = page[page.index('id="e5"') : page.index('id="e6"')]
    assert "different environments" not in reads


def facts_of(rows: dict[str, Any]) -> RunFacts:
    return run_facts(by_column(rows))


def test_identical_environments_appear_once() -> None:
    base: dict[str, Any] = {
        "source": "measured",
        "point": {"ranks": 1, "omp_num_threads": 2},
        "environment": {
            "node": {"cpu_model": "X", "cores": 2, "gpus": [], "governor": None},
            "versions": {"tensorflow": "2.18.1", "mpi": None},
            "variables": {
                "SLURM_JOB_ID": "1",
                "HOROVOD_RANK": "0",
                "OMP_NUM_THREADS": "2",
                "HOROVOD_CYCLE_TIME": "1",
            },
            "ranks": [{"affinity": "0"}, {"affinity": "1"}],
        },
        "resources": {"hosts": ["a", "a"], "slurm_nodes": [None, None]},
    }
    other = json.loads(json.dumps(base))
    other["environment"]["variables"] |= {"SLURM_JOB_ID": "2", "OMP_NUM_THREADS": "4"}
    other["resources"]["hosts"] = ["b", "b"]
    same = group([facts_of(base), facts_of(other)])
    assert len(same) == 1 and same[0].runs == 2
    assert list(same[0].hosts) == ["a", "b"] and list(same[0].affinities) == ["0", "1"]
    assert "OMP_NUM_THREADS" not in same[0].facts and "HOROVOD_CYCLE_TIME" in same[0].facts
    assert differences(same) == {}
    other["environment"]["versions"]["tensorflow"] = "2.17.0"
    apart = group([facts_of(base), facts_of(base), facts_of(other)])
    assert differences(apart) == {"tensorflow": {"2.18.1": 2, "2.17.0": 1}}
    # MPI and Gloo are two ways to communicate, not two places.
    mpi = json.loads(json.dumps(base))
    mpi["environment"]["variables"]["HOROVOD_CONTROLLER"] = "mpi"
    assert list(differences(group([facts_of(base), facts_of(mpi)]))) == ["HOROVOD_CONTROLLER"]
    assert run_facts({}).environment == ()


def test_nothing_finished_still_renders(tmp_path: Path) -> None:
    fake = Fake("e", {"ranks": [1, 2]}, "weak", fate=lambda p, r: "TIMEOUT" if r else "new")
    page = render(make_results(tmp_path, [fake]))
    outline(page)
    text = visible(page)
    assert "No run has finished yet" in text
    assert "0 of 6 runs done , 4 failed, 2 pending" in text
    assert "TIMEOUT 1 rank" in text


def test_single_point_and_imported(tmp_path: Path) -> None:
    fake = Fake("e", {"a": [1]}, repeats=2, source="imported")
    text = visible(render(make_results(tmp_path, [fake])))
    assert "Published results" in text and "(imported)" in text


@pytest.mark.slow
def test_where_the_ranks_of_a_hang_stood(tmp_path: Path) -> None:
    fake = Fake("e", {"ranks": [2]}, repeats=1, fate=lambda p, r: "HANG")
    root = make_results(tmp_path, [fake])
    (path,) = (root / "runs" / SITE).glob("*/failure.json")
    stacks = [
        {"ranks": "1", "count": 1, "where": "<script>:3 f < g", "phase": "timed", "still_s": 41.0},
        {"ranks": "", "count": 2, "where": "left nothing", "phase": None, "still_s": None},
    ]
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"stacks": stacks}))
    page = render(root)
    outline(page)
    told = "Function (called from) 1 timed 41 s <script>:3 f < g 2 without numbers – – left nothing"
    assert told in visible(page)
    assert "<script>:3" not in page
    for damaged in ({"ranks": 1}, [1, None, {}]):
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {"stacks": damaged}))
        outline(render(root))


@pytest.mark.slow
def test_hostile_names_are_inert(tmp_path: Path) -> None:
    fake = Fake(
        "e",
        {HOSTILE: ["a", HOSTILE], "ranks": [1, 2]},
        "weak",
        repeats=2,
        fate=lambda p, r: "done" if p["ranks"] == 1 else HOSTILE,
        excluded=lambda p: HOSTILE if p == {} else "",
        description=HOSTILE,
        environment=lambda p, r: {HOSTILE: HOSTILE},
    )
    root = make_results(
        tmp_path, [fake], campaign=HOSTILE, lines=[HOSTILE, "</pre>"], description=HOSTILE
    )
    page = render(root)
    found = outline(page)
    assert "script" not in found.tags and "img" not in found.tags
    assert "onerror" not in found.attributes
    assert HOSTILE in visible(page)


def test_a_run_without_facts_is_counted_not_fatal(tmp_path: Path) -> None:
    root = make_results(tmp_path, [Fake("e", {"a": [1, 2]}, repeats=1)])
    summary = pd.read_parquet(root / "summary.parquet")
    summary["_facts"] = [None, *summary["_facts"][1:]]
    write_summary(summary, root / "summary.parquet")
    text = visible(render(root))
    assert "1 record could not be read" in text and "done: record cannot be read" in text


@pytest.mark.slow
def test_page_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake("e", {"a": list(range(30)), "b": list(range(10))}, repeats=1,
                fate=lambda p, r: "TIMEOUT" if p["a"] > 19 else "done")  # fmt: skip
    root = make_results(tmp_path, [fake], lines=["x" * 5000] * 100)
    monkeypatch.setattr(experiment_part, "MAX_ROWS", 20)
    monkeypatch.setattr(experiment_part, "MAX_FAILURES", 5)
    monkeypatch.setattr(experiment_part, "MAX_SVG_BYTES", 10)
    page = render(root)
    text = visible(page)
    assert "280 rows more: in the CSV files" in text
    assert "300 runs, with records" in text and "280 runs more: in runs.csv" in text
    assert "95 failed runs more: see plan.csv" in text
    assert "left out to keep this page small" in text and "<svg" not in page
    assert len(page) < 150_000


@pytest.mark.slow
def test_the_page_of_hundreds_of_runs_takes_as_long_as_they_are_many(tmp_path: Path) -> None:
    fakes = [
        Fake(f"e{i}", {"a": list(range(10)), "b": list(range(10))}, repeats=2) for i in range(4)
    ]
    took = []
    for many in (1, 1, 4):  # the first time with what is imported
        root = make_results(tmp_path / str(len(took)), fakes[:many])
        start = time.process_time()
        page = render(root, figures=False)
        took.append(time.process_time() - start)
    assert took[2] < 8 * took[1]
    assert len(page) < 2_000_000


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    root = make_results(tmp_path / "my results", [Fake("e", {"a": [1, 2]}, repeats=1)])
    plan = ["--plan", root / "plan.json", "--tables", root / "tables"]
    words = ["page.py", *plan, "--summary", root / "summary.parquet"]
    words += ["--figures", root / "figures", "--runs", root / "runs" / SITE]
    words += ["--out", root / "report.html"]
    drawn = run_script("figures.py", *plan, "--out", root / "figures")
    assert drawn.returncode == 0, drawn.stderr
    done = run_script(*words)
    assert done.returncode == 0, done.stderr
    assert (root / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert not list(root.glob(".*tmp"))
    write_jobs(root, {})
    again = run_script(*words, "--jobs", root / "jobs.csv")
    assert again.returncode == 0, again.stderr
    assert "1 Slurm job" in (root / "report.html").read_text()


def test_numbers_for_people() -> None:
    assert with_interval(1234.56, 1230.1, 1239.2) == "1,235 [1,230, 1,239]"
    assert with_interval(0.0123456, 0.0121, 0.0126, "s") == "0.0123 [0.0121, 0.0126] s"
    assert with_interval(98765.4, 90000, 110000) == "98,765 [90,000, 110,000]"
    assert with_interval(5.0, 5.0, 5.0) == "5.000 [5.000, 5.000]"
    assert with_interval(12.3456, None, None) == "12.35"
    assert with_interval(47.5, None, None, "images/s") == "47.5 images/s"  # and no 47.50
    assert as_given(128.0) == "128" and as_given(0.05) == "0.05" and as_given(2e-7) == "2e-07"
    assert as_given(1234.5) == "1,234" and as_given(None) == "–"
    assert with_interval(None, 1, 2) == "–"
    assert number(123456.7) == "123,457" and number(float("nan")) == "–"
    assert percent(0.782, 0.779, 0.786) == "78.2 [77.9, 78.6] %"
    assert percent(0.5) == "50.0 %"
    assert duration(0.5) == "0.50 s" and duration(7265) == "2 h 01 min"
    assert listed(["a", "b", "c", "d", "e"], 3) == "a, b and 3 more"
    assert listed(["460", "1,257"]) == "460 and 1,257"
    assert listed(["1,257", "ranks 0,1000", "b"]) == "1,257; ranks 0,1000; and b"
    assert listed(["a, b", "c"]) == "a, b; and c"


@pytest.mark.slow
def test_the_page_of_published_results_names_the_study(tmp_path: Path) -> None:
    fakes = [Fake("e", {"ranks": [1, 2]}, "weak", repeats=1, source="imported")]
    text = render(make_results(tmp_path / "a", fakes, campaign="imported"), figures=False)
    assert "<h1>data_loading</h1>" in text and "Published results" in text
    # A campaign with a name keeps it, and so does one of our own runs.
    named = render(make_results(tmp_path / "b", fakes, campaign="mine"), figures=False)
    assert "<h1>mine</h1>" in named


def test_a_chart_says_what_it_needs_to_browsers_without_scripts_only(page: str) -> None:
    bound = page.count('<noscript><p class="empty">This chart needs JavaScript')
    assert page.count("needs JavaScript") == bound > 0
