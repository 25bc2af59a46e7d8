"""The page of a comparison, and where its sides are read from."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from scalesweep.commands.compare import compare
from scalesweep.compare.forest_plot import MAX_DOTS
from scalesweep.compare.inputs import Side, read_sides
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from tests.fakes.pages import bare
from tests.fakes.results import SITE, Fake, make_results
from tests.fakes.sides import CPU, FakePoint, FakeSide, make_side, rates

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
BASE = [100.0, 101.0, 99.0]
RANKS = {"ranks": [1, 2, 4]}


class Page(HTMLParser):
    """Elements and text of a page; ``cells`` of the tables of points, with their sort values."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def page_of(base: Side, new: Side, out: Path) -> str:
    compare(base, new, out)
    return bare((out / "compare.html").read_text())


def here(results: Path, site: str = "toy") -> Campaign:
    """As much of a campaign as a comparison of two other folders needs."""
    stub = SimpleNamespace(results=results, site=SimpleNamespace(name=site))
    return cast(Campaign, stub)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``before`` and ``after``, where four ranks are a fifth faster and two have failed."""
    root = tmp_path_factory.mktemp("comparing")
    make_results(root / "before", [Fake("io", RANKS)], "before")
    make_results(
        root / "after",
        [
            Fake(
                "io_after", RANKS,
                speed=lambda p: 1.2 if p["ranks"] == 4 else 1.0,
                fate=lambda p, r: "TIMEOUT" if p["ranks"] == 2 else "done",
                environment=lambda p, r: {"tensorflow": "2.19.0"},
            )
        ],
        "after",
    )  # fmt: skip
    return root


def test_results_folders_are_compared_wherever_they_are(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "before", tmp_path / "moved away")
    shutil.rmtree(tmp_path / "moved away" / "runs")  # plan, tables and summary are enough
    base, new = read_sides(
        str(tmp_path / "moved away"), str(folders / "after"), here(tmp_path / "results")
    )
    assert (base.campaign, new.campaign, base.site) == ("before", "after", SITE)
    out = tmp_path / "results"
    text = page_of(base, new, out)
    frame = pd.read_parquet(out / "compare" / "points.parquet")
    csv = pd.read_csv(out / "compare" / "points.csv", float_precision="round_trip")
    assert csv["ratio"].equals(frame["ratio"]) and csv["base_mean"].equals(frame["base_mean"])
    rows = frame[(frame["metric"] == "total_throughput") & (frame["phase"] == "later")]
    told = dict(zip(rows["ranks"].tolist(), rows["verdict"].tolist(), strict=True))
    assert told == {1: "unclear", 2: "only base", 4: "improved"}
    (four,) = rows[rows["ranks"] == 4].to_dict("records")
    assert four["ratio_low"] < 1.2 < four["ratio_high"]
    times = frame[(frame["metric"] == "total_time") & (frame["ranks"] == 4)]
    assert set(times["verdict"]) == {"improved"} and (times["ratio"] < 1).all()

    page = Page(text)
    assert "planned there: TIMEOUT" in page.text and "2.18.1" in page.text
    assert "Versions of software differ: tensorflow (2.18.1 / 2.19.0)." in page.text
    assert "Rows of base (before) are simulated" in page.text
    assert repr(four["ratio"]) in [attrs.get("data-order") for attrs in page.all("td")]
    assert "In base: io; in new: io_after." in page.text


def test_the_page_is_whole_and_runs_nothing(folders: Path, tmp_path: Path) -> None:
    sides = read_sides(str(folders / "before"), str(folders / "after"), here(tmp_path))
    text = page_of(*sides, tmp_path)
    page = Page(text)
    policies = [a.get("content") for a in page.all("meta") if a.get("http-equiv")]
    assert policies and "default-src 'none'" in str(policies[0])
    assert "http://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", text) and "https://" not in text
    for attrs in page.all("table"):
        assert attrs.get("aria-label")
    assert page.all("th") and all(attrs.get("scope") in ("col", "row") for attrs in page.all("th"))
    assert any("data" in (attrs.get("class") or "").split() for attrs in page.all("table"))
    images = page.all("svg")
    assert images and all(a.get("role") == "img" and a.get("aria-label") for a in images)
    assert "ratios from" in str(images[0]["aria-label"])
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        target = str(link["href"])
        assert target[1:] in ids if target[0] == "#" else (tmp_path / target).is_file()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    def fake(role: str, values: list[float], variable: str) -> Side:
        point = {"ranks": 1, HOSTILE: HOSTILE}
        return make_side(
            FakeSide(
                role,
                [FakePoint(point, rates(values), HOSTILE),
                 FakePoint({**point, "ranks": 2 if role == "base" else 3}, rates(values), HOSTILE)],
                campaign=HOSTILE, hardware={**CPU, "cpu_model": HOSTILE + role},
                variables={"OMP_X": variable}, host=HOSTILE + role,
            )
        )  # fmt: skip

    text = page_of(fake("base", BASE, HOSTILE), fake("new", BASE, HOSTILE * 2), tmp_path)
    page = Page(text)
    assert not page.all("script") and not page.all("img")
    assert HOSTILE in page.text
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)


def test_many_points_are_drawn_in_part_and_told(tmp_path: Path) -> None:
    def fake(role: str, factor: float) -> Side:
        return make_side(
            FakeSide(
                role,
                [FakePoint({"ranks": n}, rates([(1 + factor * n) * v for v in BASE]))
                 for n in range(1, 101)],
            )
        )  # fmt: skip

    text = page_of(fake("base", 0.0), fake("new", 0.01), tmp_path)
    assert f"Of 100 points, the {MAX_DOTS} whose intervals lie farthest from 1 are drawn" in text
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert "ranks 100" in svg and "ranks 61" in svg and "ranks 60<" not in svg


def test_nothing_in_common_is_a_page_that_says_why(tmp_path: Path) -> None:
    base = make_side(FakeSide("base", [FakePoint({"ranks": 1, "size": 2}, rates(BASE))]))
    new = make_side(FakeSide("new", [FakePoint({"ranks": 1, "size": 3}, rates(BASE))]))
    page = Page(page_of(base, new, tmp_path))
    assert "No point is on both sides" in page.text
    assert "no common value of size (2 in base, 3 in new)" in page.text
    assert pd.read_csv(tmp_path / "compare" / "versions.csv").empty
    assert len(pd.read_csv(tmp_path / "compare" / "unmatched.csv")) == 2


def test_one_repeat_everywhere_is_told_as_such(tmp_path: Path) -> None:
    sides = [
        make_side(FakeSide(r, [FakePoint({"ranks": 1}, rates([9.0]))])) for r in ("base", "new")
    ]
    page = Page(page_of(*sides, tmp_path))
    assert "no point has two or more repeats on both sides" in page.text
    assert "unclear: one repeat on a side" in page.text


def test_another_sites_runs_are_a_side(folders: Path, tmp_path: Path) -> None:
    root = tmp_path / "results"
    shutil.copytree(folders / "before", root)
    shutil.copytree(root / "runs" / SITE, root / "runs" / "elsewhere")
    # Profiled runs lie beside the others, and are never compared.
    first = min((root / "runs" / "elsewhere").iterdir())
    shutil.copytree(first, first.with_name(f"{first.name}.cprofile"))
    base, new = read_sides(str(root), f"{root}@elsewhere", here(tmp_path / "other"))
    assert (new.site, len(new.runs), new.campaign) == ("elsewhere", len(base.runs), "before")
    page = Page(page_of(base, new, tmp_path))
    assert "9 runs of both sides are the same" in page.text
    with pytest.raises(UserError, match=f"has no runs of 'nowhere'; allowed: {SITE}, elsewhere"):
        read_sides(str(root), f"{root}@nowhere", here(tmp_path / "other"))
    (root / "plan.json").unlink()
    base, new = read_sides(f"{root}@{SITE}", f"{root}@elsewhere", here(tmp_path / "other"))
    assert new.plan is None and len(new.runs) == 9 and not new.planned


def error_of(base: str, new: str, campaign: Campaign) -> str:
    with pytest.raises(UserError) as error:
        read_sides(base, new, campaign)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_compared_is_one_line(folders: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    campaign = here(results)
    after = str(folders / "after")
    assert "base and new are both" in error_of(after, after + "/.", campaign)
    assert "NEW nowhere: no such folder" in error_of(after, "nowhere", campaign)
    assert "plan.json and summary.parquet missing" in error_of(after, str(tmp_path), campaign)
    broken = tmp_path / "broken"
    shutil.copytree(folders / "before", broken)
    (broken / "summary.parquet").write_bytes(b"PAR1")
    assert "not a readable table" in error_of(after, str(broken), campaign)
    pd.DataFrame({"run_id": []}).to_parquet(broken / "summary.parquet")
    assert "has no column benchmark" in error_of(after, str(broken), campaign)
    (broken / "plan.json").write_text(json.dumps({"plan": "none"}))
    assert "not a plan" in error_of(after, str(broken), campaign)
    plan = json.loads((folders / "before" / "plan.json").read_text())
    del plan["experiments"][0]["scale"]
    (broken / "plan.json").write_text(json.dumps(plan))
    assert "written by another version" in error_of(after, str(broken), campaign)
    empty = make_results(tmp_path / "empty", [Fake("io", RANKS, fate=lambda p, r: "new")])
    assert "no finished run to compare" in error_of(after, str(empty), campaign)


def test_a_folder_with_an_at_sign_is_a_folder(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "before", tmp_path / "me@work")
    base, _ = read_sides(str(tmp_path / "me@work"), str(folders / "after"), here(tmp_path / "r"))
    assert base.site == SITE and base.campaign == "before"


def test_a_moved_folder_is_not_written_to(folders: Path, tmp_path: Path) -> None:
    before: dict[Path, Any] = {p: p.stat().st_mtime_ns for p in folders.rglob("*")}
    sides = read_sides(str(folders / "before"), str(folders / "after"), here(tmp_path / "r"))
    compare(*sides, tmp_path / "r")
    assert {p: p.stat().st_mtime_ns for p in folders.rglob("*")} == before
