"""A page opened in a real browser, from its file and without a network, and what it must do."""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

# Everything that comes to life near the screen, woken.
WAKE = """async () => {
  document.querySelectorAll('details').forEach(one => { one.open = true })
  const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
  for (const one of document.querySelectorAll('[data-table], [data-chart]')) {
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
            " && [...document.querySelectorAll('[data-table]')].every("
            "one => one.classList.contains('live'))"
        )

    def data(self, name: str) -> Any:
        """The data of a table of the page, as its scripts have it."""
        return _unpacked(self._tables[name])

    @cached_property
    def _tables(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.page.text_content("#report-data"))["tables"]
        return found

    def table(self, name: str) -> Any:
        """What holds a table."""
        return self.page.locator(f'[data-table="{name}"]')

    def shown(self, name: str) -> int:
        """How many rows a table has left after its filters."""
        return int(
            self.page.evaluate(
                f"""() => jQuery('[data-table="{name}"] table').DataTable()
                    .rows({{search: 'applied'}}).count()"""
            )
        )

    def export(self, name: str, kind: str) -> str:
        """What a table's button for CSV or JSON saves."""
        with self.page.expect_download() as download:
            self.table(name).get_by_role("button", name=kind, exact=True).click()
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

        Contrast is among what axe calls serious.
        """
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert self.violations() == []
        assert self.said == [] and self.asked == [self.address]

    def wait_drawn(self, chart: Any, words: str) -> None:
        """Until what a chart is called has these words."""
        self.page.wait_for_function(
            "([e, words]) => e.querySelector('.plot')?.ariaLabel?.includes(words)",
            arg=[chart.element_handle(), words],
        )


def _unpacked(data: Any) -> Any:
    if isinstance(data, list):
        return [_unpacked(one) for one in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"levels", "at"}:
        at = [0] * data["at"] if isinstance(data["at"], int) else data["at"]
        return [data["levels"][place] for place in at]
    return {name: _unpacked(value) for name, value in data.items()}


def check_report(browser: Any, report: Path) -> None:
    """All that a report must do, whatever campaign it is of."""
    with Visit(browser, report) as visit:
        visit.wake()
        for part in ("points", "runs"):  # of the first experiment that has them
            place = visit.page.locator(f'[data-table$="-{part}"]').first
            name = str(place.get_attribute("data-table"))
            if part == "runs":
                check_export(visit, report, name)
            check_sorting(visit, name)
            check_filter(visit, name)
        for chart in visit.page.locator("[data-chart]").all()[:2]:
            check_chart(visit, chart)
        visit.check_sound()
    with Visit(browser, report, 390, "dark") as visit:
        visit.wake()
        visit.check_sound()


def check_export(visit: Visit, report: Path, name: str) -> None:
    """What a table of runs saves has the numbers of the Parquet file, to the last digit."""
    section = name.partition("-")[0]
    experiment = visit.page.locator(f"#{section}").get_attribute("data-experiment")
    kept = pd.read_parquet(report.parent / "tables" / str(experiment) / "runs.parquet")
    text = io.StringIO(visit.export(name, "CSV"))
    saved = pd.read_csv(text, float_precision="round_trip").set_index("run_id")
    as_json = json.loads(visit.export(name, "JSON"))
    assert len(saved) == len(as_json) and set(as_json[0]) == {"run_id", *saved.columns}
    numbers = kept.set_index("run_id").select_dtypes("number")
    both = [column for column in numbers if column in saved.columns]
    assert both
    for column in both:  # runs that have never been are not in the file
        one = saved.loc[numbers.index, column].to_numpy(float)
        np.testing.assert_array_equal(one, numbers[column].to_numpy(float), err_msg=column)


def check_sorting(visit: Visit, name: str) -> None:
    """A click on a heading sorts by values, not by texts, and a second one turns them round."""
    data = visit.data(name)
    place = max(n for n, one in enumerate(data["shown"]) if one.get("number") and "raw" in one)
    column = data["raw"][data["shown"][place]["raw"]]["values"]
    order = f"""() => jQuery('[data-table="{name}"] table').DataTable()
        .rows({{order: 'applied', search: 'applied'}}).indexes().toArray()"""
    table = visit.table(name)
    heading = table.locator(f'thead th[data-dt-column="{place}"]:not([data-dt-order="disable"])')
    for sign, word in ((1, "ascending"), (-1, "descending")):
        heading.click()
        visit.page.wait_for_function(
            "([e, word]) => e.ariaSort === word", arg=[heading.element_handle(), word]
        )
        values = [column[row] for row in visit.page.evaluate(order) if column[row] is not None]
        assert values == sorted(values, reverse=sign < 0)
    heading.click()


def check_filter(visit: Visit, name: str) -> None:
    """Choosing a value of a parameter leaves its rows."""
    picks = visit.table(name).locator("> .picks select")
    if picks.count() == 0:
        return
    before = visit.shown(name)
    pick = picks.first
    title = pick.locator("xpath=..").locator("span").inner_text()
    data = visit.data(name)
    shown = next(one for one in data["shown"] if one["title"] == title)
    option = pick.locator("option").nth(1)
    texts = shown.get("texts") or [
        "–" if value is None else str(value) for value in data["raw"][shown["raw"]]["values"]
    ]
    pick.select_option(index=1)
    assert visit.shown(name) == texts.count(option.inner_text()) < before
    pick.select_option(index=0)
    assert visit.shown(name) == before


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
