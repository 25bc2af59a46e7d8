"""What the report of 10,000 runs costs to make, and how it opens.

From an existing summary: the steps tables, figures (SVG, PDF and PNG of each) and page, as the
workflow calls them one after the other on two cores, with nothing taken from an earlier report;
seconds of each and together, their CPU seconds, and the size of the page. It is then opened from
its file in a browser: seconds until it is loaded and first painted, to unfold all its parts, of the
longest frame while it is scrolled through (its charts and tables come to life then), and from a
click on a heading of the largest table until it is sorted.

    python -m bench.report [--json FILE] [--repeats 10] [--largest 1024] [--rounds 2]
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.lib.made_runs import make
from bench.lib.pairs import figure, line, write_json
from bench.lib.steps import PROCESSES, take_steps

STEPS = ("tables", "figures", "page")
SECONDS, SIZE_MB = 20.0, 10.0
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
TIMES = """() => {
  const page = performance.getEntriesByType('navigation')[0]
  const paint = performance.getEntriesByName('first-contentful-paint')[0]
  return {load: page.loadEventEnd / 1e3, paint: paint.startTime / 1e3,
          elements: document.querySelectorAll('*').length}
}"""
UNFOLD = """() => {
  const began = performance.now()
  document.querySelectorAll('details').forEach(one => { one.open = true })
  document.body.getBoundingClientRect()
  return (performance.now() - began) / 1e3
}"""
# The longest time between two frames while the page is scrolled through, a screen at a time.
SCROLL = """async () => {
  const frame = () => new Promise(done => requestAnimationFrame(done))
  let longest = 0, before = await frame()
  for (let y = 0; y < document.body.scrollHeight; y += innerHeight) {
    scrollTo(0, y)
    const now = await frame()
    longest = Math.max(longest, now - before)
    before = now
  }
  return longest / 1e3
}"""

# Seconds from a click on a heading of a table until it is redrawn; the table is there already.
SORT = """async name => {
  const node = document.querySelector(`[data-table="${name}"] table`)
  const drawn = new Promise(done => jQuery(node).DataTable().one('draw', done))
  const began = performance.now()
  node.querySelector('thead th[data-dt-column="1"]').click()
  await drawn
  node.getBoundingClientRect()
  return (performance.now() - began) / 1e3
}"""
LARGEST = """() => [...document.querySelectorAll('[data-table$=-runs].live')].map(one => [
  jQuery(one.querySelector('table')).DataTable().rows().count(), one.dataset.table]
).sort((a, b) => b[0] - a[0])[0]"""


def opened(page: Path) -> dict[str, Any] | None:
    """How the page opens in a browser: seconds, and how many elements it has; None without one."""
    if not CHROMIUM.exists():
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        tab = browser.new_context(viewport={"width": 1600, "height": 900}, offline=True).new_page()
        tab.goto(page.as_uri(), wait_until="load")
        tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
        times: dict[str, Any] = tab.evaluate(TIMES)
        times["unfold"] = tab.evaluate(UNFOLD)
        times["longest_frame"] = tab.evaluate(SCROLL)
        times["rows"], table = tab.evaluate(LARGEST)
        times["sort"] = statistics.median(tab.evaluate(SORT, table) for _ in range(9))
        browser.close()
    return times


def main() -> None:
    """Measure and print rows; with --json also write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10, help="a tenth of 10,010 runs each")
    parser.add_argument("--largest", type=int, default=1024, help="ranks, a power of two")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        made = make(Path(scratch) / "large", args.repeats, args.largest)
        made.plan()
        take_steps(made, "summarise", "accounting")
        rounds = [take_steps(made, *STEPS, anew=True) for _ in range(args.rounds)]
        page = made.results / "report.html"
        size_mb = page.stat().st_size / 1e6
        drawn = len(list((made.results / "figures").glob("*/*.svg")))
        browser = opened(page)
    of = f"of {len(made.done):,} runs"
    whole = statistics.median(sum(cost.wall_s for cost in costs.values()) for costs in rounds)
    rows = [figure(f"report {of}: tables, {drawn} figures and page", whole, "s", SECONDS)]
    for name in rounds[0]:
        took = statistics.median(costs[name].wall_s for costs in rounds)
        rows.append(figure(f"  of these {name}", took, "s"))
    cpu = statistics.median(sum(cost.cpu_s for cost in costs.values()) for costs in rounds)
    rows.append(figure("  CPU time of these steps", cpu, "s"))
    rows.append(figure(f"report {of}: the page", size_mb, "MB", SIZE_MB))
    if browser:
        rows += [
            figure("opened in a browser: loaded after", browser["load"], "s"),
            figure("opened in a browser: first painted after", browser["paint"], "s"),
            figure("all its parts unfolded in", browser["unfold"], "s"),
            figure("longest frame while scrolling through", browser["longest_frame"], "s"),
            figure(f"sorting {browser['rows']:,} rows after a click", browser["sort"], "s"),
        ]
    print(*map(line, rows), sep="\n")
    details = {
        "runs": len(made.done),
        "processes": PROCESSES,
        "rounds": [{name: cost._asdict() for name, cost in costs.items()} for costs in rounds],
        "browser": browser,
    }
    write_json({**details, "figures": rows}, args.json)


if __name__ == "__main__":
    main()
