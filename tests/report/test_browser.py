"""The report in a real browser, from a file, without a network."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.fake_results import Fake, demo, make_results
from tests.unit.test_report import HOSTILE, render

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        shutil.which(CHROMIUM) is None, reason=f"no {CHROMIUM}: apt-get install chromium"
    ),
]

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = make_results(tmp_path_factory.mktemp("browser"), [*demo()[:2], *demo()[3:]])
    render(root)
    return (root / "report.html").as_uri()


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

    def open_all(self) -> None:
        self.page.eval_on_selector_all("details", "all => all.forEach(d => d.open = true)")


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


def test_figures_are_large_enough_on_a_phone(browser: Any, address: str) -> None:
    visit = Visit(browser, address, 390)
    sizes = visit.page.eval_on_selector_all(
        ".card svg",
        "all => all.map(s => [s.getBoundingClientRect().width, s.viewBox.baseVal.width])",
    )
    assert len(sizes) == 8
    # The smallest regular text is 8 units high; keep it above 7 pixels.
    assert all(8 * shown / units > 7 for shown, units in sizes)
    visit.context.close()


def test_labels_stay_inside_their_figures(browser: Any, address: str) -> None:
    visit = Visit(browser, address)
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
    visit.context.close()


def test_print_hides_navigation_and_cuts_nothing(browser: Any, address: str) -> None:
    visit = Visit(browser, address, 718)  # A4 less its margins
    visit.page.emulate_media(media="print")
    assert not visit.page.is_visible("nav")
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    visit.context.close()


def test_hostile_names_do_nothing(browser: Any, tmp_path: Path) -> None:
    fake = Fake("e", {HOSTILE: ["a", HOSTILE], "b": ["<svg onload=alert(3)>", "x"]}, repeats=2,
                fate=lambda p, r: HOSTILE if r else "done", description=HOSTILE)  # fmt: skip
    root = make_results(tmp_path, [fake], campaign=HOSTILE, lines=[HOSTILE])
    render(root)
    visit = Visit(browser, (root / "report.html").as_uri(), 390)
    visit.open_all()
    assert visit.said == []
    assert visit.page.locator("script").count() == 0
    assert visit.page.locator("img").count() == 0
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    visit.context.close()
