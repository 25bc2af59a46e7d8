"""Update the pictures in the docs from a report: `make screenshots`.

    python tools/screenshots.py [REPORT]

Writes docs/images/report.png (the first screen) and explore.png (a chart), with Debian's chromium.
"""

import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]

report = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "results" / "report.html"
if not report.is_file():
    sys.exit(f"error: no {report}: run `make demo` first")
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
    page = browser.new_page(viewport={"width": 1280, "height": 900}, offline=True)
    page.goto(report.resolve().as_uri())
    page.screenshot(path=IMAGES / "report.png")
    page.eval_on_selector_all("details", "all => all.forEach(d => { d.open = true })")
    chart = page.locator("[data-chart]").first
    chart.scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart].live, [data-chart][data-drawn]")
    chart.screenshot(path=IMAGES / "explore.png")
    browser.close()
