"""The report in a real browser, from a file, without a network."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.imported_table import write_imported
from tests.fakes.pages import HOSTILE, render
from tests.fakes.results import Fake, demo, make_results
from tests.report.visits import (
    CONTRAST,
    NEEDED,
    Visit,
    check_chart,
    check_filter,
    check_report,
    check_sorting,
)

pytestmark = [pytest.mark.browser, NEEDED]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    first, second, _, *others = demo()
    fakes = [replace(first, predict=[2048, 4096]), second, *others]
    root = make_results(tmp_path_factory.mktemp("browser"), fakes)
    render(root)
    return (root / "report.html").as_uri()


# Layouts of two scales: tokens/s of a rank grow with the micro-batch and fall with tp.
LAYOUTS: dict[str, Any] = {
    "name": "sweep",
    "parameters": {
        "ranks": {"column": "ranks"}, "dp": {"column": "dp", "unit": "ranks"},
        "tp": {"column": "tp", "unit": "ranks"}, "micro_batch": {"column": "mbs"},
    },
    "metrics": {
        "tokens_per_second": {
            "column": "rate", "unit": "tokens/s", "better": "higher", "scope": "rank"
        },
        "mfu_unstated": {"column": "mfu", "unit": "1", "better": "higher", "scope": "rank"},
        "gpu_memory": {"column": "memory", "unit": "GiB", "better": "lower", "scope": "rank"},
    },
    "failed": {"column": "status", "values": {"oom": "GPU_OUT_OF_MEMORY"}},
    "mesh": ["dp", "tp"],
}  # fmt: skip
LAYOUT_ROWS = "ranks,dp,tp,mbs,rate,mfu,memory,status\n" + "".join(
    f"{ranks},{ranks // tp},{tp},{mbs},"
    + (
        f"{1000 * mbs**0.5 / tp},{0.1 * mbs**0.5 / tp},{10 * mbs / tp},ok"
        if mbs < 16 * tp
        else ",,,oom"
    )
    + "\n"
    for ranks in (8, 16)
    for tp in (1, 2, 4)
    for mbs in (1, 2, 4, 8, 16, 32)
)


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = write_imported(tmp_path_factory.mktemp("layouts"), LAYOUT_ROWS, LAYOUTS)
    render(root)
    return (root / "report.html").as_uri()


def test_a_study_of_layouts_answers_first_and_runs_what_is_looked_at(
    browser: Any, layouts: str
) -> None:
    visit = Visit(browser, layouts)
    page = visit.page
    # At first no library has been run, and no table or chart is built.
    assert page.evaluate("[typeof jQuery, typeof vegaEmbed]") == ["undefined", "undefined"]
    assert page.locator(".live, [data-drawn]").count() == 0
    # The first screen: a line for each scale, then why layouts failed.
    rows = page.locator("#findings table.layouts tbody tr")
    assert [row.locator("> *").all_inner_texts()[:6] for row in rows.all()] == [
        ["8", "8", "1", "8", "2,828", "28.3\xa0%"], ["16", "16", "1", "8", "2,828", "28.3\xa0%"]
    ]  # fmt: skip
    assert rows.first.inner_text().rstrip().endswith("3 of 18 (GPU_OUT_OF_MEMORY 3)")
    assert rows.first.bounding_box()["y"] < 900
    # Then the section, before the chart of everything and the table of all points.
    headings = page.locator("#e1 h3").all_inner_texts()
    assert headings[:3] == ["Layouts", "Explore", "Points"]
    figures = [one.get_attribute("id") for one in page.locator("#e1 figure").all()]
    assert figures == ["e1-layouts-scale", "e1-layouts-effects", "e1-layouts-memory-1"]
    for link in page.locator("nav.parts a").all():
        target = str(link.get_attribute("href"))
        assert page.locator(target).count() == 1, target
    visit.wake()
    check_sorting(visit, "e1-layouts")
    check_filter(visit, "e1-layouts")
    # All layouts that ran, by the first choice, with their utilisation.
    chart = page.locator('[data-chart="e1-chart"]')
    assert chart.get_by_label("Vertical axis").locator("option:checked").inner_text() == (
        "MFU (FLOP not stated), whole run"
    )
    assert chart.get_attribute("data-drawn") == "30"
    check_chart(chart)
    assert visit.violations() == []
    assert visit.said == [] and visit.asked == [layouts]
    visit.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("dark", 1280), ("light", 390)])
def test_a_study_of_layouts_is_readable(
    browser: Any, layouts: str, scheme: str, width: int
) -> None:
    visit = Visit(browser, layouts, width, scheme)
    visit.wake()
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    assert visit.page.evaluate(CONTRAST)["bad"] == []
    assert visit.said == []
    visit.context.close()


def test_what_a_report_must_do(browser: Any, address: str) -> None:
    check_report(browser, Path(address.removeprefix("file://")))


def test_a_finding_leads_to_its_rows_and_these_to_their_runs(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    root = Path(address.removeprefix("file://")).parent
    visit.page.locator(".study .every > summary").first.click()
    finding = visit.page.locator(".findings li", has_text="Not decided: 1,024 ranks").first
    finding.get_by_role("link", name="rows").click()
    visit.page.wait_for_selector('[data-table="e1-points"].live')
    assert visit.shown("e1-points") == 1
    table = visit.table("e1-points")
    assert table.locator("tbody th").first.inner_text() == "1024"
    unfold = table.get_by_role("button", name="2/3")
    unfold.focus()
    visit.page.keyboard.press("Enter")
    assert unfold.get_attribute("aria-expanded") == "true"
    runs = table.locator(".of-point li")
    assert runs.count() == 3
    assert "failed: TIMEOUT" in runs.nth(2).inner_text()
    links = [one.get_attribute("href") for one in table.locator(".of-point a").all()]
    assert len(links) == 4  # two records, a failure and its log
    assert all((root / link).is_file() for link in links)
    assert visit.said == []
    visit.context.close()


def test_a_chart_bridges_no_hole_and_switches_its_scale(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    visit.wake()
    chart = visit.page.locator('[data-chart="e1-chart"]')
    assert "10 points, 1 without a result" in chart.inner_text()
    drawn = [one.get_attribute("d") for one in chart.locator(".mark-line path").all()]
    # Predicted, ideal, and what was measured.
    assert sorted(path.count("M") for path in drawn) == [1, 1, 2]
    assert "hollow, dotted: 2 predicted" in chart.inner_text()
    hollow = chart.locator(".mark-symbol path[fill='transparent']").all()
    assert len(hollow) == 2
    assert "source: predicted" in str(hollow[0].get_attribute("aria-label"))
    ticks = lambda: chart.locator(".role-axis-label text").all_text_contents()  # noqa: E731
    before = ticks()
    chart.get_by_label("log vertical").uncheck()
    visit.page.wait_for_timeout(300)
    assert any(one.endswith("0,000") for one in ticks()) and ticks() != before
    chart.get_by_label("Horizontal axis").select_option(
        label="Efficiency (total throughput), later epochs"
    )
    visit.page.wait_for_timeout(300)
    assert "10 points" in chart.inner_text()
    assert "predicted" not in chart.inner_text()  # the axis is not the ranks
    # Of choices in quick succession the last one is drawn.
    vertical = chart.get_by_label("Vertical axis")
    titles = [one.inner_text() for one in vertical.locator("option").all()]
    for _ in range(3):
        vertical.evaluate(
            """e => { for (const place of [0, 1, 2, 3, e.options.length - 1]) {
              e.selectedIndex = place; e.dispatchEvent(new Event('change')) } }"""
        )
    visit.page.wait_for_timeout(1500)
    label = str(chart.locator(".plot").get_attribute("aria-label"))
    assert label.startswith(f"{titles[-1]} over ")
    assert visit.said == []
    visit.context.close()


def test_a_heat_map_has_a_cell_for_each_point_and_holds_the_rest(
    browser: Any, address: str
) -> None:
    visit = Visit(browser, address)
    visit.wake()
    chart = visit.page.locator('[data-chart="e2-chart"]')

    def cells() -> list[str]:
        visit.page.wait_for_timeout(400)
        marks = chart.locator(".mark-rect path[aria-label]").all()
        return [str(mark.get_attribute("aria-label")) for mark in marks]

    lines = chart.locator(".note").inner_text()
    chart.get_by_label("Drawn as").select_option(label="heat map")
    assert len(cells()) == 29  # one of 30 is excluded
    assert "27 points, a cell each, 2 without a result" in chart.inner_text()
    assert "held" not in chart.locator(".note").inner_text()
    values = chart.locator(".mark-text.role-mark text").all_text_contents()
    assert len(values) == 29 and values.count("no result") == 2
    columns = chart.locator(".role-axis-label text").all_text_contents()
    chart.get_by_label("Vertical side").select_option(label="intra_threads [threads]")
    assert len(cells()) == 29
    swapped = chart.locator(".role-axis-label text").all_text_contents()
    assert sorted(swapped) == sorted(columns) and swapped != columns
    assert "95 % interval: " in cells()[-1]
    assert visit.violations() == []
    chart.get_by_label("Drawn as").select_option(label="lines")
    assert cells() == [] and chart.locator(".note").inner_text() == lines
    # Of a series with one parameter there is nothing to choose.
    assert visit.page.locator('[data-chart="e1-chart"]').get_by_label("Drawn as").count() == 0
    assert visit.said == []
    visit.context.close()


def test_zero_has_no_colour_on_a_logarithmic_scale_but_is_a_result(
    browser: Any, address: str
) -> None:
    visit = Visit(browser, address)
    visit.wake()
    visit.page.evaluate(
        """() => {
          const holder = document.body.appendChild(document.createElement('div'))
          holder.dataset.chart = 'made'
          const side = (leader, values) => (
            { leader, title: `side ${leader}`, number: true, values, texts: values.map(String) })
          const axes = [side(0, [1, 1, 2, 2]), side(1, [1, 2, 1, 2])]
          const data = { rows: 4, sources: null, axes,
            measures: [{ title: 'watts', mean: [0, 5, 7, null] }] }
          window.scalesweep.heatmap.make(holder, data, document.createElement('span'))
        }"""
    )
    chart = visit.page.locator('[data-chart="made"]')
    chart.get_by_label("logarithmic").check()
    visit.page.wait_for_timeout(400)
    texts = chart.locator(".mark-text.role-mark text").all_text_contents()
    assert sorted(texts) == ["0", "5", "7", "no result"]
    said = chart.locator(".note").inner_text()
    assert "2 points, a cell each, 1 without a colour, because they are not above 0" in said
    assert "1 without a result" in said
    visit.context.close()


def test_without_scripts_the_tables_are_there(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(address)
    assert page.locator('[data-table="e1-points"] tbody tr').count() == 11
    assert "needs JavaScript" in str(page.locator('[data-chart="e1-chart"]').text_content())
    context.close()


def test_on_paper_there_are_charts_that_no_screen_has_shown(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    charts = visit.page.locator("[data-chart]")
    assert "JavaScript" not in charts.first.inner_text()
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    visit.page.wait_for_function(
        "() => [...document.querySelectorAll('[data-chart]')].every(one => one.dataset.drawn)"
    )
    visit.page.emulate_media(media="print")
    assert charts.first.locator(".plot svg").first.is_visible()
    assert not charts.first.locator(".picks").first.is_visible()
    visit.context.close()


def test_a_link_unfolds_what_it_leads_to(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    part = visit.page.locator("#e1 > details.whole")
    assert part.get_attribute("open") is None
    visit.page.locator('nav a[href="#e1"]').click()
    visit.page.wait_for_function("document.querySelector('#e1 > details.whole').open")
    visit.context.close()


def test_on_paper_a_table_has_all_its_rows(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    visit.wake()
    rows = visit.table("e2-points").locator("tbody tr")
    assert rows.count() == 15
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert rows.count() == visit.shown("e2-points") > 15
    visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert rows.count() == 15
    visit.context.close()


@pytest.mark.parametrize("width", [390, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_is_silent_and_readable(
    browser: Any, address: str, width: int, scheme: str
) -> None:
    visit = Visit(browser, address, width, scheme)
    visit.open_all()
    assert visit.said == []
    assert visit.asked == [address]
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    contrast = visit.page.evaluate(CONTRAST)
    assert contrast["seen"] > 200
    assert contrast["bad"] == []
    visit.context.close()


@pytest.mark.parametrize("width", [1280, 1024])
def test_no_column_of_a_table_is_cut_off(browser: Any, address: str, width: int) -> None:
    visit = Visit(browser, address, width)
    visit.wake()
    # Scaling over ranks with the numbers of two phases, the widest table.
    table = visit.table("e1-points")
    headings = [one.inner_text() for one in table.locator("thead th.num:not(.phase)").all()]
    assert [place for place, one in enumerate(headings) if one == "Efficiency"] == [2, 5]
    room = table.bounding_box()
    for heading in table.locator("thead th").all():
        box = heading.bounding_box()
        assert box["x"] + box["width"] <= room["x"] + room["width"] + 1
    visit.context.close()


def test_figures_are_large_enough_on_a_phone(browser: Any, address: str) -> None:
    visit = Visit(browser, address, 390)
    sizes = visit.page.eval_on_selector_all(
        ".card svg",
        "all => all.map(s => [s.getBoundingClientRect().width, s.viewBox.baseVal.width])",
    )
    assert len(sizes) == 10
    # The smallest regular text is 8 units high; keep it above 7 pixels.
    assert all(8 * shown / units > 7 for shown, units in sizes)
    visit.context.close()


def test_the_first_screen_begins_with_a_card(browser: Any, address: str) -> None:
    """The verdict is above the fold, its figure inside the card, and metadata below the cards."""
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light")):
        visit = Visit(browser, address, width, scheme)
        card = visit.page.locator(".study").first
        verdict = card.locator(".findings li").first.bounding_box()
        assert verdict["y"] + verdict["height"] < 900
        box, chart = card.bounding_box(), card.locator(".small-chart").bounding_box()
        assert chart["x"] >= box["x"]
        assert chart["x"] + chart["width"] <= box["x"] + box["width"]
        assert chart["width"] > 200
        assert visit.page.locator(".facts").bounding_box()["y"] > box["y"] + box["height"]
        visit.context.close()


def test_labels_stay_inside_their_figures(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
    outside = visit.page.evaluate(
        """() => [...document.querySelectorAll('.card svg, .small-chart')].flatMap(s => {
          const b = s.getBoundingClientRect()
          return [...s.querySelectorAll('text')].filter(t => {
            const r = t.getBoundingClientRect()
            return r.left < b.left - 1 || r.right > b.right + 1
              || r.top < b.top - 1 || r.bottom > b.bottom + 1
          }).map(t => t.textContent)
        })"""
    )
    assert outside == []
    visit.context.close()


def test_print_hides_navigation_and_cuts_nothing(browser: Any, address: str) -> None:
    visit = Visit(browser, address, 718)  # A4 less its margins
    visit.page.emulate_media(media="print")
    assert not visit.page.is_visible("nav")
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    visit.context.close()


def test_hostile_names_do_nothing(browser: Any, tmp_path: Path) -> None:
    axes = {HOSTILE: ["a", HOSTILE], "b": ["<svg onload=alert(3)>", "x"], "c": [1, 2]}
    fake = Fake("e", axes, repeats=2,
                fate=lambda p, r: HOSTILE if r else "done", description=HOSTILE)  # fmt: skip
    root = make_results(tmp_path, [fake], campaign=HOSTILE, lines=[HOSTILE])
    render(root)
    visit = Visit(browser, (root / "report.html").as_uri(), 390)
    visit.wake()
    # Of three parameters the third is held, and the reader says at which value.
    chart = visit.page.locator('[data-chart="e1-chart"]')
    chart.get_by_label("Drawn as").select_option(label="heat map")
    visit.page.wait_for_timeout(400)
    held = chart.locator('[aria-label="Values that are held"] select')
    assert held.count() == 1 and "4 points, a cell each; held: " in chart.inner_text()
    held.select_option(index=1)
    visit.page.wait_for_timeout(400)
    assert chart.locator(".mark-rect path[aria-label]").count() == 4
    value = held.locator("option").nth(1).inner_text()
    assert value in chart.locator(".note").inner_text()
    assert visit.said == []
    assert visit.page.locator("script").count() == 8  # two libraries, five of ours, and the data
    assert visit.page.locator("img").count() == 0
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    visit.context.close()
