"""Pages in a real browser, from their files and offline: what only a browser can tell.

The gate of the page (tests/acceptance/test_page.py) holds that a report is sound and inert.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalesweep.compare.page import write_comparison
from scalesweep.compare.sides import read_sides
from scalesweep.config.campaign import Campaign
from scalesweep.config.campaign_keys import HistorySettings
from scalesweep.history.page import write_history
from scalesweep.history.store import append, keep_alternate
from tests.fakes.history import FakeSession, alternate_of, make_history, make_session
from tests.fakes.imported_table import LAYOUT_ROWS, LAYOUTS, write_imported
from tests.fakes.pages import render
from tests.fakes.results import Fake, demo, make_results
from tests.report.visits import NEEDED, Visit, check_report, chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow, NEEDED]

RUN = "b-r1-000000000000"  # of the session of the history whose results are still there


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a campaign like the demo's."""
    first, second, _, *others = demo()
    root = make_results(tmp_path_factory.mktemp("report"), [first, second, *others])
    render(root)
    return root / "report.html"


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_imported(tmp_path_factory.mktemp("layouts"), LAYOUT_ROWS, LAYOUTS)
    render(root)
    return root / "report.html"


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("comparison")
    for name, factor in (("before", 1.0), ("after", 1.1)):
        speed = lambda point, factor=factor: factor * point["batch_size"]  # noqa: E731
        axes = {"ranks": [1, 2, 4, 8], "batch_size": [1, 2, 4, 8]}
        make_results(root / name, [Fake("io", axes, speed=speed)], name)
    here = cast(Campaign, SimpleNamespace(results=root, site=SimpleNamespace(name="x")))
    write_comparison(*read_sides(str(root / "before"), str(root / "after"), here), root)
    return root / "compare.html"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, results = tmp_path_factory.mktemp("history"), tmp_path_factory.mktemp("results")
    make_history(folder)
    keep_alternate(folder, alternate_of(9, 10).assign(first_bad=True))
    (results / "runs" / "there" / RUN).mkdir(parents=True)
    (results / "runs" / "there" / RUN / "record.json").write_text("{}")
    (results / "report.html").write_text("<title>the report</title>")
    session = make_session(FakeSession(0, {"p": [1.0]}, site="there"))
    append(folder, session.assign(results=str(results)))
    write_history(HistorySettings(folder=folder))
    return folder / "history.html"


def test_what_a_report_must_do(browser: Any, report: Path) -> None:
    check_report(browser, report)


@pytest.mark.parametrize("name", ["layouts", "comparison", "history"])
def test_other_pages_are_sound_on_a_phone_in_the_dark(
    browser: Any, name: str, request: pytest.FixtureRequest
) -> None:
    page: Path = request.getfixturevalue(name)
    with Visit(browser, page, 390, "dark") as visit:
        visit.wake()
        visit.check_sound()


def test_a_finding_leads_to_its_rows_and_these_to_their_runs(browser: Any, report: Path) -> None:
    with Visit(browser, report) as visit:
        # The answer is above the fold. A link unfolds what it leads to.
        line = visit.page.locator("#findings tbody tr").first
        assert "1,024 ranks" in line.inner_text() and "clear" in line.inner_text()
        box = visit.page.locator("#e1 .large svg").first.bounding_box()
        assert box["y"] < 900
        fold = visit.page.locator("#e1 > details", has_text="finding").first
        fold.locator("summary").first.click()
        finding = fold.locator("tbody tr", has_text="1,024 ranks").first
        finding.get_by_role("link", name="rows").click()
        visit.page.wait_for_selector("#e1-points.live")
        assert [row[0] for row in visit.rows("e1-points")] == ["1024"]
        point = visit.page.locator("#e1-points").get_by_role("link", name="2/3")
        point.focus()
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector("#e1-runs.live")
        assert [row[3] for row in visit.rows("e1-runs")] == ["done", "done", "failed: TIMEOUT"]
        runs = visit.page.locator("#e1-runs tbody a").all()
        links = [one.get_attribute("href") for one in runs]
        assert len(links) == 4  # two records, a failure and its log
        assert all((report.parent / link).is_file() for link in links)


def test_charts_bridge_no_hole_and_draw_the_last_choice(browser: Any, report: Path) -> None:
    with Visit(browser, report) as visit:
        visit.wake()
        chart = visit.page.locator('[data-chart="e1-chart"]')
        assert "10 points, 1 without a result" in chart.inner_text()
        drawn = [one.get_attribute("d") for one in chart.locator(".mark-line path").all()]
        # Ideal, and what was measured.
        assert sorted(path.count("M") for path in drawn) == [1, 2]
        # Of choices in quick succession the last one is drawn.
        vertical = chart.get_by_label("Metric")
        last = vertical.locator("option").last.inner_text()
        vertical.evaluate(
            """e => { for (const place of [0, 1, 2, 3, e.options.length - 1]) {
              e.selectedIndex = place
              e.dispatchEvent(new Event('change', { bubbles: true })) } }"""
        )
        visit.wait_drawn(chart, f"{last} over ")
        # A heat map has a cell for each point that was not excluded.
        chart = visit.page.locator('[data-chart="e2-chart"]')
        chart.get_by_label("Drawn as").select_option(label="heat map")
        cells = chart.locator(".mark-rect path[aria-label]")
        cells.nth(28).wait_for()
        assert cells.count() == 29
        values = chart.locator(".mark-text.role-mark text").all_text_contents()
        assert len(values) == 29 and values.count("no result") == 2
        assert visit.said == []


def test_paper_has_everything_and_no_scripts_the_tables(browser: Any, report: Path) -> None:
    with Visit(browser, report, 718) as visit:  # A4 less its margins
        visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        visit.page.emulate_media(media="print")
        chart = visit.page.locator("[data-chart]").first
        chart.locator(".plot svg").first.wait_for()
        assert not chart.locator(".picks").first.is_visible()
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("#e1-points tbody tr").count() == 11
    context.close()


def test_figures_are_whole_and_large_enough_on_a_phone(browser: Any, report: Path) -> None:
    with Visit(browser, report, 390) as visit:
        # The smallest regular text is 8 units high; keep it above 7 pixels.
        sizes = visit.page.eval_on_selector_all(
            ".card svg",
            "all => all.map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)",
        )
        assert sizes and all(8 * size > 7 for size in sizes)
        outside = visit.page.evaluate(
            """() => [...document.querySelectorAll('.card svg')].flatMap(s => {
              const b = s.getBoundingClientRect()
              return [...s.querySelectorAll('text')].filter(t => {
                const r = t.getBoundingClientRect()
                return r.left < b.left - 1 || r.right > b.right + 1
                  || r.top < b.top - 1 || r.bottom > b.bottom + 1
              }).map(t => t.textContent)
            })"""
        )
        assert outside == []


def test_layouts_answer_first_and_run_what_is_looked_at(browser: Any, layouts: Path) -> None:
    with Visit(browser, layouts) as visit:
        page = visit.page
        # Until somebody scrolls no library runs, and no table or chart is built.
        assert page.evaluate("[typeof jQuery, typeof vegaEmbed]") == ["undefined", "undefined"]
        assert page.locator(".live, [data-drawn]").count() == 0
        # The first screen: the layout to run; below the figure a line for each scale.
        assert "16 ranks, dp 16 x tp 1" in page.locator("#findings .key").inner_text()
        assert page.locator("#e1 .large svg").bounding_box()["y"] < 900
        rows = page.locator("#e1 table.layouts tbody tr")
        first = [row.locator("> *").first.inner_text() for row in rows.all()]
        assert first == ["8", "16", "32"]
        assert "1 of 4 (GPU_OUT_OF_MEMORY 1)" in rows.first.inner_text()
        visit.wake()
        assert page.locator('[data-chart="e1-chart"]').get_attribute("data-drawn") == "9"


def test_a_history_follows_its_choices_and_leads_to_reports(browser: Any, history: Path) -> None:
    with Visit(browser, history) as visit:
        visit.wake()
        # The gravest point comes first; its lines, their values and what they are over are chosen.
        chart = visit.page.locator("[data-chart]")
        assert chart.get_attribute("data-drawn") == "14"
        visit.wait_drawn(chart, "step_time [s] over commits")
        for label, choice, wanted in (
            ("Over", "dates", "over dates"),
            ("Values", "relative to the baseline", "step_time, baseline = 1 over dates"),
        ):
            chart.get_by_role("combobox", name=label).select_option(label=choice)
            visit.wait_drawn(chart, wanted)
        chart.get_by_role("button", name="terms and parts").click()
        visit.wait_drawn(chart, "Values, baseline = 1")
        assert chart.get_attribute("data-drawn") == "42"  # three terms
        mark = chart.locator(".mark-symbol path").last
        mark.scroll_into_view_if_needed()
        mark.click(force=True)
        assert "(no longer there)" in chart.locator(".session").inner_text()
        chart.get_by_role("combobox", name="Point").select_option(
            label="b on there, CPU, weak scaling: p"
        )
        chart.get_by_role("combobox", name="Session").select_option(index=1)
        links = {one.inner_text(): one.get_attribute("href") for one in chart.locator("a").all()}
        assert links == {
            "report": "./../results0/report.html",
            RUN: f"./../results0/runs/there/{RUN}/record.json",
        }
        there = chart
        there.get_by_role("link", name="report").click()
        assert visit.page.title() == "the report"
