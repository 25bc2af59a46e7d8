"""A page opened in a real browser, from its file and without a network, and what it must do."""

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

# Everything that comes to life near the screen, woken.
WAKE = """async () => {
  document.querySelectorAll('details').forEach(one => { one.open = true })
  const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
  for (const one of document.querySelectorAll('table.data, [data-chart]')) {
    one.scrollIntoView()
    await frame()
  }
}"""
NEEDED = pytest.mark.skipif(
    shutil.which(CHROMIUM) is None, reason=f"no {CHROMIUM}: apt-get install chromium"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, ended afterwards."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A page opened offline, with all it said and asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.address = path.as_uri()
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.address)

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_error: object) -> None:
        self.context.close()

    def wake(self) -> None:
        """Bring all tables and charts to life."""
        self.page.evaluate(WAKE)
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('[data-chart]')].every(one => one.dataset.drawn)"
            " && [...document.querySelectorAll('table.data')].every("
            "one => one.classList.contains('dataTable'))"
        )

    def rows(self, name: str) -> list[list[str]]:
        """The cells of the rows that a table shows."""
        cells: list[list[str]] = self.page.eval_on_selector_all(
            f"#{name} tbody tr", "all => all.map(r => [...r.cells].map(c => c.innerText))"
        )
        return cells

    def export(self, name: str) -> str:
        """What a table's button for CSV saves."""
        with self.page.expect_download() as download:
            self.page.locator(f"#{name}").get_by_role("button", name="CSV", exact=True).click()
        return Path(download.value.path()).read_text("utf-8")

    def violations(self) -> list[str]:
        """What axe-core calls serious or critical, with everything as it looks on the screen."""
        self.page.eval_on_selector_all(
            "figure, .scroll", "all => all.forEach(e => { e.style.contentVisibility = 'visible' })"
        )
        axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
        found = axe.run(self.page).response["violations"]
        return [
            f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def check_sound(self) -> None:
        """It says nothing, asks for nothing but itself, fits its width, and everybody can read it.
        Contrast is among what axe calls serious."""
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert self.violations() == []
        assert self.said == [] and self.asked == [self.address]

    def wait_drawn(self, chart: Any, words: str) -> None:
        """Until what a chart is called has these words."""
        self.page.wait_for_function(
            "([e, words]) => e.querySelector('.plot')?.ariaLabel?.includes(words)",
            arg=[chart.element_handle(), words],
        )


def check_report(browser: Any, report: Path) -> None:
    """All that a report must do, whatever campaign it is of."""
    with Visit(browser, report) as visit:
        visit.wake()
        check_table(visit, report)
        for chart in visit.page.locator("[data-chart]").all()[:2]:
            check_chart(visit, chart)
        assert visit.said == []
    with Visit(browser, report, 390, "dark") as visit:
        visit.wake()
        visit.check_sound()


def check_table(visit: Visit, report: Path) -> None:
    """The runs of the first experiment sort by values, are searched, and are saved with the digits
    of the Parquet file."""
    experiment = visit.page.locator("#e1").get_attribute("data-experiment")
    kept = pd.read_parquet(report.parent / "tables" / str(experiment) / "runs.parquet")
    saved = pd.read_csv(io.StringIO(visit.export("e1-runs")), float_precision="round_trip")
    saved = saved.set_index("Run").loc[kept["run_id"]]
    numbers = kept.select_dtypes("number")
    written = [set(saved[name].dropna()) for name in saved.select_dtypes("number")]
    assert any(set(numbers[name].dropna()) in written for name in numbers if "_mean_" in name)
    heading = visit.page.locator("#e1-runs thead th", has_text="Time").first
    place = heading.evaluate("e => e.cellIndex")
    order = f"#e1-runs tbody tr > :nth-child({place + 1})"
    for sign, word in ((1, "ascending"), (-1, "descending")):
        heading.click()
        visit.page.wait_for_function(
            "([e, word]) => e.ariaSort === word", arg=[heading.element_handle(), word]
        )
        values = visit.page.eval_on_selector_all(order, "all => all.map(c => c.dataset.order)")
        shown = [float(value) for value in values if value]
        assert shown == sorted(shown, reverse=sign < 0)
    search = visit.page.locator("#e1-runs input[type=search]")
    search.fill(str(kept["run_id"].iloc[0]))
    assert len(visit.rows("e1-runs")) == 1
    visit.page.locator("#e1-runs").get_by_role("button", name="All rows").click()
    assert len(visit.rows("e1-runs")) > 1


def check_chart(visit: Visit, chart: Any) -> None:
    """Points and axes can be chosen; marks say what they show."""
    drawn = lambda: int(chart.get_attribute("data-drawn"))  # noqa: E731
    assert drawn() > 0 and chart.locator(".plot svg, .plot canvas").count() == 1
    picks = chart.get_by_role("group", name="Points to show").locator("select")
    whole = drawn()
    for index, less in ((1, "n < whole"), (0, "n === whole")):
        picks.last.select_option(index=index)
        chart.page.wait_for_function(
            f"([e, whole]) => {{ const n = Number(e.dataset.drawn); return {less} }}",
            arg=[chart.element_handle(), whole],
        )
    vertical = chart.get_by_label("Metric")
    if vertical.locator("option").count() > 1:
        title = vertical.locator("option").last.inner_text()
        vertical.select_option(label=title)
        visit.wait_drawn(chart, f"{title} over")
        vertical.select_option(index=0)
    chart.scroll_into_view_if_needed()
    mark = chart.locator(".mark-symbol path").first
    if mark.count():
        mark.hover(force=True)
        chart.page.wait_for_selector("#vg-tooltip-element.visible")
        assert "95 % interval" in chart.page.inner_text("#vg-tooltip-element")
