"""Update the pictures in the docs from a report: `make screenshots`.

    python tools/screenshots.py [REPORT] [--out FOLDER]

Writes report.png (the first screen), explore.png (a chart), table.png and report-dark.png (a phone,
dark) to docs/images. Needs Debian's chromium.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> int:
    """Run the command line; 1 if there is no report or no browser."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", nargs="?", type=Path, default=ROOT / "results" / "report.html")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    args = parser.parse_args()
    cures = {args.report: "run `make demo` first", Path(CHROMIUM): "apt-get install chromium"}
    for path, cure in cures.items():
        if not path.is_file():
            print(f"error: no {path}: {cure}", file=sys.stderr)
            return 1
    args.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, width, height, scheme in (
            ("report", 1280, 900, "light"),
            ("report-dark", 420, 900, "dark"),
        ):
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
            )
            page = context.new_page()
            page.goto(args.report.resolve().as_uri())
            page.screenshot(path=args.out / f"{name}.png")
            if name == "report":
                page.eval_on_selector_all("details", "all => all.forEach(d => { d.open = true })")
                parts = {"explore": "[data-chart]", "table": '[data-table$="points"]'}
                for part, selector in parts.items():
                    element = page.locator(selector).first
                    element.scroll_into_view_if_needed()
                    page.wait_for_selector(f"{selector}.live, {selector}[data-drawn]")
                    element.screenshot(path=args.out / f"{part}.png")
            context.close()
        browser.close()
    print(f"pictures: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
