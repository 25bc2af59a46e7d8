"""A campaign through Snakemake itself, with a benchmark that is done in milliseconds: the order of
its runs, what is collected of it, and its results damaged, moved and compared."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.core.record import write_record
from tests.conftest import Project, make_project
from tests.fakes.folder_tree import tree
from tests.fakes.two_benchmarks import BOTH, add_toy_fast

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: c
site: toy
description: "</script><script>alert('pwned')</script> {text} `a <b>`_ |x|"
control: {experiment: w, point: {ranks: 1}, every: 2}
experiments:
  A-b_2:
    benchmark: toy
    description: "</script><script>alert('pwned')</script>"
    axes: {size: [2, 3], threads: [null, 1]}
    fixed: {rate: 2}
  w: {benchmark: toy, scaling: weak, axes: {ranks: [1, 2]}, repeats: 2}
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, str]:
    """A project whose campaign has run, and what was said; tests leave it as it is."""
    project = make_project(tmp_path_factory.mktemp("toy") / "project")
    return project, project.campaign(CAMPAIGN)


@pytest.fixture
def finished(toy: tuple[Project, str], tmp_path: Path) -> Project:
    """A copy, with its times."""
    return Project(shutil.copytree(toy[0].path, tmp_path / "project", symlinks=True))


def test_runs_start_in_the_campaigns_order(toy: tuple[Project, str], finished: Project) -> None:
    project, said = toy
    records = project.results()
    count = len(records)
    shown = re.findall(rf"^toy.*, repeat \d+: (\d+) of {count}", said, re.M)
    assert [int(place) for place in shown] == [*range(1, count + 1)]
    plan = json.loads((project.path / "results" / "plan.json").read_text())
    assert plan["order"] == {"seed": 0, "of": count}
    runs = {run["run_id"]: run["position"] for e in plan["experiments"] for run in e["runs"]}
    (control,) = (e for e in plan["experiments"] if e["control"])
    assert sorted(runs[run["run_id"]] for run in control["runs"]) == [1, 4, 7, 10]
    for run_id, record in records.items():
        assert record["order"] == {"seed": 0, "position": runs[run_id], "of": count}
    started = sorted(records, key=lambda run_id: records[run_id]["started"])
    assert [runs[run_id] for run_id in started] == [*range(1, count + 1)]
    assert "<h2>Control</h2>" in project.report() and "order (seed 0)" in project.report()
    # Another order measures nothing again; more points run in theirs, with the control.
    text = "order: as_written\n" + CAMPAIGN.replace("[2, 3]", "[2, 3, 5]")
    left = re.findall(r": \d+ of \d+ \((toy-\S+)\)$", finished.campaign(text, "-n"), re.M)
    assert 2 <= len(left) <= 3 and not {*left} & records.keys()


def variable(page: str, name: str) -> dict[str, Any]:
    """A variable of the scripts of Snakemake's report."""
    place = page.index("= ", page.index(f'<script id="{name}">')) + 2
    value: dict[str, Any] = json.JSONDecoder().raw_decode(page, place)[0]
    return value


def test_snakemakes_report_collects_tables_figures_and_page_and_starts_nothing(
    finished: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(finished.path / "results")
    # Nothing is fetched, and runs that are missing are not made.
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    said = finished.campaign(CAMPAIGN.replace("[1, 2]", "[1, 2, 4]"), "--report", "r.zip")
    assert "Report created" in said and "rror" not in said
    assert tree(finished.path / "results") == before

    with zipfile.ZipFile(finished.path / "r.zip") as archive:
        names = archive.namelist()
        page = archive.read("r/report.html").decode()
    assert "alert('pwned')" not in page
    shown = variable(page, "results")
    experiments = {"A-b_2", "w"}
    expected = {"plan.csv", "jobs.csv", "report.html", "tables/w/scaling.tex"}
    expected |= {f"tables/{name}/points.{kind}" for name in experiments for kind in ("csv", "tex")}
    expected |= {
        f"figures/{entry['files']['png']}"
        for path in finished.path.glob("results/figures/*/index.json")
        for entry in json.loads(path.read_bytes())
    }
    assert {f"results/{path}" for path in expected} <= shown.keys()
    assert {Path(path).suffix for path in shown} == {".csv", ".tex", ".png", ".html"}
    for path, entry in shown.items():
        assert f"r/{entry['data_uri']}" in names and entry["caption"]
        assert not path.endswith(".png") or entry["labels"] == {"figure": Path(path).stem}
    scaling = shown["results/tables/w/scaling.csv"]
    assert scaling["labels"] == {"table": "scaling", "format": "csv"}
    assert "speedup" in scaling["caption"]
    categories = variable(page, "categories")
    assert set(categories) == {"Tables", "Figures", "Report"}
    assert experiments <= set(categories["Figures"]) < set(categories["Tables"])


def test_comparing_and_predicting_read_what_is_there_and_run_nothing(
    finished: Project, tmp_path: Path
) -> None:
    results, elsewhere = finished.path / "results", tmp_path / "made elsewhere"
    shutil.copytree(results, elsewhere, ignore=shutil.ignore_patterns("runs"))
    pending = [*results.glob("runs/toy/toy-r2-*")]
    for folder in pending:
        shutil.rmtree(folder)
    before = finished.records()
    done = finished.scalesweep("compare", str(elsewhere), "--campaign", "c.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "comparison: results/compare.html" in done.stdout
    page = (results / "compare.html").read_text()
    assert "c against c" in page and f"{len(before)} runs of both sides are the same" in page
    points = pd.read_csv(results / "compare" / "points.csv")
    verdicts = points.groupby("ranks")["verdict"].agg(set).to_dict()
    assert verdicts == {1: {"inconclusive"}, 2: {"only base"}}
    unmatched = pd.read_csv(results / "compare" / "unmatched.csv")
    assert unmatched["why"].tolist() == ["planned there: pending"]
    said = finished.scalesweep("predict", "c.yaml", "--ranks", "8,16")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "1 count measured, and a prediction needs 3" in said.stdout
    assert finished.records() == before


def test_runs_are_measured_again_by_the_users_wish_only(finished: Project) -> None:
    before = finished.records()
    again = ("run", "c.yaml", "--again")
    refused = finished.scalesweep(*again, "nothing")
    assert refused.returncode == 1 and "allowed: A-b_2, control, disturbed, w" in refused.stderr
    dry = finished.scalesweep(*again, "w", "-n")  # two of them are the control's, too
    assert "4 finished runs to be measured again" in dry.stderr and finished.records() == before
    done = finished.scalesweep(*again, "A-b_2", "--", "--until", "run")
    assert done.returncode == 0, done.stderr
    assert finished.records().keys() == before.keys()
    aside = [*finished.path.glob("results/runs/*/*/record.json.broken")]
    assert len(aside) == len([*finished.path.glob("results/runs/*/*/attempt-2")]) == 4


def test_a_results_folder_that_was_moved_still_reads(finished: Project) -> None:
    moved = finished.path / "some where" / "results"
    moved.parent.mkdir()
    (finished.path / "results").rename(moved)
    # One more point fails: every rule and the report after a failure work there too, also where no
    # history can be written.
    failing = "  x: {benchmark: toy, axes: {behaviour: [exit3]}}\n"
    words = ("--config", f"results={moved}")
    said = finished.campaign(f"history: /proc/none\n{CAMPAIGN}{failing}", *words, code=1)
    assert f"report: {moved}/report.html" in said and "no report" not in said
    # Why it failed, and not with which command.
    assert "toy-r1" in said and "CalledProcessError" not in said and "Error in rule" not in said
    assert "NON_ZERO_EXIT" in (moved / "report.html").read_text()
    assert not (finished.path / "results" / "runs").exists()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def reasons(project: Project) -> dict[str, str]:
    return {row["run_id"]: row["reason"] for row in project.plan() if row["reason"]}


def repeats(project: Project) -> list[int]:
    """How many runs count at each point of two repeats."""
    return [*project.table("w", "points")["repeats"]]


def test_damaged_results_are_named_set_aside_and_measured_again(finished: Project) -> None:
    runs, before = finished.path / "results" / "runs" / "toy", finished.records()
    of_w = {row["ranks"]: row["run_id"] for row in finished.plan() if row["experiment"] == "w"}
    first, second = of_w["2"], of_w["1"]
    # A report of what is there goes on without what is damaged.
    text = (runs / second / "record.json").read_text()
    (runs / second / "record.json").write_text(text.replace('"repeat": ', '"repeat": 1'))
    (runs / ".index.json").unlink()  # as in a copy without times: nothing is known of the samples
    flip(runs / first / "samples.npz")
    said = finished.campaign(CAMPAIGN, "report")
    told = "warning: 1 record cannot be trusted and {} set aside: {} ({}"
    why = ("samples.npz was changed: checksum differs", "record was changed after it was written")
    assert told.format("was", first, why[0]) in said
    assert told.format("will be", second, f"the {why[1]}") in said
    assert reasons(finished).keys() == {first, second} and repeats(finished) == [1, 1]
    page = finished.report()
    assert "checksum differs" in page and "was changed after it was written" in page

    # They are measured again, and nothing else; what had been made of them is made anew.
    (finished.path / "results" / "summary.parquet").write_bytes(b"PAR1")
    (runs / ".index.json").write_text("{")
    shutil.rmtree(finished.path / "results" / "tables" / "A-b_2")
    finished.campaign(CAMPAIGN, "tables")
    now = finished.records()
    assert {run_id for run_id in now if before[run_id] != now[run_id]} == {first, second}
    assert repeats(finished) == [2, 2] and len(finished.table("A-b_2", "points")) == 4

    # Of another shape, which shows when samples are read: the call fails, its report has the rest.
    record = json.loads((runs / first / "record.json").read_bytes())
    np.savez(runs / "odd.npz", local_times=np.ones(3))
    write_record(runs / first, record, runs / "odd.npz")
    said = finished.campaign(CAMPAIGN, code=1)
    why = "local_times is float64 of shape (3,), not times[epoch, rank]"
    assert f"error: 1 record cannot be trusted and was set aside: {first} ({why})" in said
    assert reasons(finished) == {first: why} and repeats(finished) == [2, 1]
    assert "BAD_RECORD" in finished.report()
    assert {f"{name}.broken" for name in ("record.json", "samples.npz")} <= {
        path.name for path in (runs / first).iterdir()
    }


def test_two_benchmarks_are_compared_and_an_unsupported_point_is_said(project: Project) -> None:
    add_toy_fast(project.path / "workflow" / "benchmarks")
    odd = "  odd: {benchmark: toy, axes: {behaviour: [good, unsupported]}}\n"
    text = f"campaign: two\nsite: toy\nexperiments:\n{odd}  both:{BOTH}"
    project.campaign(text, "--config", "history=kept")
    why = "behaviour unsupported: this machine has no such thing"
    page = project.report()
    assert "Unsupported points" in page and why in page and "1 unsupported" in page
    (odd,) = (row for row in project.plan() if row["behaviour"] == "unsupported")
    assert (odd["status"], odd["reason"]) == ("unsupported", why)

    # The benchmarks of one experiment: a series each, and their ratio (times 1 and 1.01 s over 0.6
    # and 0.611 s). Each is kept in the history for itself.
    scaling = project.table("both", "scaling").groupby("benchmark")["ranks"]
    assert scaling.apply(list).to_dict() == {"toy": [1, 2], "toy_fast": [1, 2]}
    ratios = project.table("both", "comparisons").query("parameter == 'benchmark'")
    assert set(ratios["value"]) == {"toy_fast"}
    assert ratios["ratio"].between(1.65, 1.67).all() and ratios["low"].dropna().gt(1.5).all()
    assert (project.path / "results/figures/both/ratio-benchmark-later.svg").is_file()
    assert "<b>toy</b>, version 1; <b>toy_fast</b>, version 1" in page
    sessions = pd.read_parquet(project.path / "kept" / "sessions")["experiment"]
    assert {"both.toy", "both.toy_fast"} <= set(sessions)
