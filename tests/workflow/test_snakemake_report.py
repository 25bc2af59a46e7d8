"""`snakemake --report` collects tables, figures and the page, and starts nothing."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project

CAMPAIGN = """
campaign: c
site: toy
description: "</script><script>alert('pwned')</script> {text} `a <b>`_ |x|"
experiments:
  A-b_2:
    benchmark: toy
    description: "</script><script>alert('pwned')</script>"
    axes: {size: [1, 2], threads: [null, 1]}
    fixed: {rate: 2}
  w: {benchmark: toy, scaling: weak, axes: {ranks: [1, 2]}}
"""


def variable(page: str, name: str) -> dict[str, Any]:
    """A variable of the report's scripts."""
    place = page.index("= ", page.index(f'<script id="{name}">')) + 2
    found: dict[str, Any] = json.JSONDecoder().raw_decode(page, place)[0]
    return found


def state(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.slow
def test_what_is_collected(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("c.yaml", CAMPAIGN)
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    results = project.path / "results"
    before = state(results)
    # Nothing is fetched, and runs that are missing are not made.
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    project.write("c.yaml", CAMPAIGN.replace("[1, 2]", "[1, 2, 4]"))
    made = project.snakemake("--configfile", "c.yaml", "--report", "r.zip")
    assert made.returncode == 0 and "Report created" in made.stderr, made.stderr
    assert "rror" not in made.stderr and state(results) == before

    with zipfile.ZipFile(project.path / "r.zip") as archive:
        names = archive.namelist()
        page = archive.read("r/report.html").decode()
    assert "alert('pwned')" not in page
    shown = variable(page, "results")
    tables = {"A-b_2": {"points"}, "w": {"points", "scaling"}}
    expected = {
        *(f"tables/{e}/{t}.csv" for e, found in tables.items() for t in found),
        "tables/A-b_2/points.tex", "tables/w/points.tex", "tables/w/scaling.tex",
        "plan.csv", "jobs.csv", "report.html",
    }  # fmt: skip
    index = [
        entry
        for path in results.glob("figures/*/index.json")
        for entry in json.loads(path.read_bytes())
    ]
    assert {entry["experiment"] for entry in index} == set(tables)
    expected |= {f"figures/{entry['files']['png']}" for entry in index}
    found = {path.removeprefix("results/") for path in shown}
    assert expected <= found
    assert {Path(path).suffix for path in found} == {".csv", ".tex", ".png", ".html"}
    for path, entry in shown.items():
        assert f"r/{entry['data_uri']}" in names
        assert entry["caption"] and set(entry["labels"]) in (
            {"table", "format"}, {"figure"}, {"page"},
        ), path  # fmt: skip
    assert shown["results/tables/w/scaling.csv"]["labels"] == {
        "table": "scaling",
        "format": "csv",
    }
    assert "speedup" in shown["results/tables/w/scaling.csv"]["caption"]
    for one in index:
        entry = shown[f"results/figures/{one['files']['png']}"]
        assert entry["labels"] == {"figure": Path(one["files"]["png"]).stem}
    categories = variable(page, "categories")
    assert set(categories) == {"Tables", "Figures", "Report"}
    assert set(categories["Figures"]) == set(tables) < set(categories["Tables"])
