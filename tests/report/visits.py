"""A page opened in a real browser, from its file and without a network, and what it must do."""

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

# Contrast of every visible text with what is behind it, after WCAG 2; text inside figures is
# left out, because it always stands on the white card.
CONTRAST = """
() => {
  const parse = c => {
    const m = c.match(/[\\d.]+/g).map(Number)
    return m.length > 3 ? m : [...m, 1]
  }
  const lum = ([r, g, b]) => {
    const one = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4
    const f = [r, g, b].map(v => one(v / 255))
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]
  }
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor)
      if (c[3] > .99) return c
    }
    return [255, 255, 255, 1]
  }
  const bad = []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  let seen = 0
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement
    const text = walk.currentNode.textContent.trim()
    if (!text || e.closest('svg') || !e.getClientRects().length) continue
    const a = lum(parse(getComputedStyle(e).color)), b = lum(behind(e))
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05)
    seen += 1
    if (ratio < 4.5) bad.push([ratio.toFixed(2), e.tagName, text.slice(0, 40)])
  }
  return {seen, bad}
}
"""

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

    def __init__(
        self, browser: Any, address: str, width: int = 1600, scheme: str = "light"
    ) -> None:
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
        self.page.goto(address)

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

    def parameters(self, name: str) -> list[str]:
        """Parameters among a table's columns."""
        return [one["name"] for one in self.data(name)["shown"] if one.get("filter")]

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

    def open_all(self) -> None:
        self.page.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")


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
    visit = Visit(browser, report.as_uri())
    visit.wake()
    names = [one.get_attribute("data-table") for one in visit.page.locator("[data-table]").all()]
    assert names
    for name in names:
        if name.endswith(("-points", "-runs")):
            check_export(visit, report, name)
            check_sorting(visit, name)
            check_filter(visit, name)
    for chart in visit.page.locator("[data-chart]").all():
        check_chart(chart)
    assert visit.violations() == []
    assert visit.said == [] and visit.asked == [report.as_uri()]
    visit.context.close()
    for scheme, width in (("dark", 1600), ("light", 390), ("dark", 390)):
        visit = Visit(browser, report.as_uri(), width, scheme)
        visit.wake()
        size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert size[0] <= size[1], (scheme, width)
        assert visit.page.evaluate(CONTRAST)["bad"] == []
        if width == 1600:
            assert visit.violations() == []
        assert visit.said == []
        visit.context.close()


def check_export(visit: Visit, report: Path, name: str) -> None:
    """What is saved has the numbers of the Parquet file, to the last digit."""
    section, part = name.split("-", 1)
    experiment = visit.page.locator(f"#{section}").get_attribute("data-experiment")
    folder = report.parent / "tables" / str(experiment)
    file = (
        "runs" if part == "runs" else "scaling" if (folder / "scaling.parquet").exists() else part
    )
    kept = pd.read_parquet(folder / f"{file}.parquet")
    path = report.parent / f".{name}.csv"
    path.write_text(visit.export(name, "CSV"), "utf-8")
    saved = pd.read_csv(path, float_precision="round_trip")
    path.unlink()
    as_json = json.loads(visit.export(name, "JSON"))
    assert len(saved) == len(as_json) and list(as_json[0]) == list(saved.columns)
    keys = (
        ["run_id"]
        if part == "runs"
        else [key for key in saved.columns if key in visit.parameters(name) or key == "source"]
    )
    places = {_key(row): n for n, row in enumerate(kept[keys].itertuples(index=False))}
    both = [column for column in saved.columns if column in kept.columns and column not in keys]
    assert any(kept[column].dtype.kind == "f" for column in both) or kept.empty
    where = [places.get(key) for key in map(_key, saved[keys].itertuples(index=False))]
    # Runs that have never been are not in the file.
    here = [n for n, place in enumerate(where) if place is not None]
    there = [place for place in where if place is not None]
    assert len(there) == len(kept)
    for column in both:
        if kept[column].dtype.kind in "fi":
            one = saved[column].to_numpy(float, na_value=float("nan"))[here]
            other = kept[column].to_numpy(float, na_value=float("nan"))[there]
            np.testing.assert_array_equal(one, other, err_msg=column)


def _key(row: Any) -> tuple[str, ...]:
    return tuple(
        "" if pd.isna(one) else str(float(one)) if isinstance(one, int | float) else str(one)
        for one in row
    )


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
        texts = data["shown"][place].get("texts")
        first = visit.page.evaluate(order)[0]
        cell = (
            table.locator("tbody tr")
            .first.locator("> *")
            .nth(place)
            .inner_text()
            .replace("\xa0", " ")
        )
        value = "–" if column[first] is None else str(column[first])
        assert cell == (texts[first] if texts else value)
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


def check_chart(chart: Any) -> None:
    """Series can be taken out and put back, axes switched and chosen."""
    drawn = lambda: int(chart.get_attribute("data-drawn"))  # noqa: E731
    assert drawn() > 0
    assert chart.locator(".plot svg, .plot canvas").count() == 1
    boxes = chart.locator(".legend input")
    if boxes.count() > 1 and boxes.first.is_visible():
        whole = drawn()
        boxes.first.focus()
        chart.page.keyboard.press("Space")
        chart.page.wait_for_function("([e, n]) => Number(e.dataset.drawn) < n",
                                     arg=[chart.element_handle(), whole])  # fmt: skip
        chart.page.keyboard.press("Space")
        chart.page.wait_for_function("([e, n]) => Number(e.dataset.drawn) === n",
                                     arg=[chart.element_handle(), whole])  # fmt: skip
    vertical = chart.get_by_label("Vertical axis")
    title = vertical.locator("option").last.inner_text()
    if vertical.locator("option").count() > 1:
        vertical.select_option(label=title)
        chart.page.wait_for_function(
            "([e, title]) => e.querySelector('.plot').ariaLabel.startsWith(title + ' over')",
            arg=[chart.element_handle(), title],
        )
        vertical.select_option(index=0)
    # What a mark shows where the pointer rests on it.
    chart.scroll_into_view_if_needed()
    mark = chart.locator(".mark-symbol path").first
    if mark.count():
        mark.hover(force=True)
        chart.page.wait_for_selector("#vg-tooltip-element.visible")
        assert "95 % interval" in chart.page.inner_text("#vg-tooltip-element")


def sorted_by_cells(visit: Visit, heading: str) -> list[float]:
    """The first table of a page, after a click on a heading: the numbers it is sorted by."""
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    table = visit.page.locator("table.data").first
    head = table.locator("thead th", has_text=heading).first
    head.click()
    visit.page.wait_for_function("e => e.ariaSort === 'ascending'", arg=head.element_handle())
    cells = table.locator(f"tbody tr > :nth-child({head.evaluate('e => e.cellIndex') + 1})")
    values = [float(cell.get_attribute("data-order")) for cell in cells.all()]
    assert values == sorted(values)
    return values


def check_sound(visit: Visit, address: str) -> None:
    """Whoever reads it, it says nothing on the console and asks for nothing but itself."""
    assert visit.violations() == []
    assert visit.said == [] and visit.asked == [address]


def check_phone(browser: Any, address: str, scheme: str) -> None:
    """A page fits a phone, all of it unfolded and awake, in a light or dark ``scheme``."""
    visit = Visit(browser, address, 390, scheme)
    visit.wake()
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    visit.open_all()
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    assert visit.page.evaluate(CONTRAST)["bad"] == []
    assert visit.said == []
    visit.context.close()
