"""What the report of 10,000 runs costs to make, and how it opens.

From an existing summary: the steps tables, figures (SVG, PDF and PNG of each) and page, as the
workflow calls them one after the other on two cores, with nothing taken from an earlier report;
seconds of each and together, their CPU seconds, and the size of the page. It is then opened from
its file in a browser, by whose clock are measured: seconds until it is loaded and first painted and
of its longest task until then (medians of five times, once it has been opened before), of the
longest frame while it is scrolled through (its charts and tables come to life then), to unfold all
its parts, and from a click on a heading of the largest table until it is sorted.

The same of the report of a made-up sweep of layouts (``bench.lib.layout_table``), imported by
``scalesweep import``: --layouts says how many rows it has.

    python -m bench.report [--repeats 10] [--largest 1024] [--rounds 2] [--layouts 1641]
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.layout_table import layout_table
from bench.lib.made_runs import make
from bench.lib.pairs import figure, run
from bench.lib.steps import take_steps
from scalesweep.core.paths import RESOURCES

STEPS = ("tables", "page")
SECONDS, SIZE_MB, PAINT = 20.0, 10.0, 2.0
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
LOADS = 5
ROOT = RESOURCES.parent
MAP = RESOURCES / "maps" / "ultrascale_playbook.yaml"
# Tasks of more than 50 ms, as the browser counts them.
WATCH = """window.longTasks = []
new PerformanceObserver(list =>
  window.longTasks.push(...list.getEntries().map(one => one.duration)))
  .observe({type: 'longtask', buffered: true})"""
TIMES = """() => {
  const page = performance.getEntriesByType('navigation')[0]
  const paint = performance.getEntriesByName('first-contentful-paint')[0]
  return {load: page.loadEventEnd / 1e3, paint: paint.startTime / 1e3,
          longest_task: Math.max(0, ...window.longTasks) / 1e3,
          elements: document.querySelectorAll('*').length}
}"""
UNFOLD = """() => {
  const began = performance.now()
  document.querySelectorAll('details').forEach(one => { one.open = true })
  document.body.getBoundingClientRect()
  return (performance.now() - began) / 1e3
}"""
# The longest time between two frames while the page is scrolled through, half a screen at a time.
SCROLL = """async () => {
  const frame = () => new Promise(done => requestAnimationFrame(done))
  let longest = 0, before = await frame()
  for (let y = 0; y < document.body.scrollHeight; y += innerHeight / 2) {
    scrollTo(0, y)
    const now = await frame()
    longest = Math.max(longest, now - before)
    before = now
  }
  return longest / 1e3
}"""

# Seconds from a click on a heading of a table until it is redrawn; the table is there already.
SORT = """async name => {
  const node = document.querySelector(`#${name} table`)
  const drawn = new Promise(done => jQuery(node).DataTable().one('draw', done))
  const began = performance.now()
  node.querySelector('thead th[data-dt-column="1"]').click()
  await drawn
  node.getBoundingClientRect()
  return (performance.now() - began) / 1e3
}"""
LIVE = """() => [...document.querySelectorAll('table.data')].every(
  one => one.classList.contains('dataTable'))"""
LARGEST = """() => [...document.querySelectorAll('[id$=-runs].live')].map(one => [
  jQuery(one.querySelector('table')).DataTable().rows().count(), one.id]
).sort((a, b) => b[0] - a[0])[0]"""


def opened(page: Path) -> dict[str, Any] | None:
    """How the page opens in a browser: seconds, and how many elements it has; None without one."""
    if not CHROMIUM.exists():
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        context = browser.new_context(viewport={"width": 1600, "height": 900}, offline=True)
        loads = []
        for _ in range(1 + LOADS):  # the first one warms up
            tab = context.new_page()
            tab.add_init_script(WATCH)
            tab.goto(page.as_uri(), wait_until="load")
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            loads.append(tab.evaluate(TIMES))
            if len(loads) <= LOADS:
                tab.close()
        times: dict[str, Any] = {
            name: statistics.median(load[name] for load in loads[1:]) for name in loads[0]
        }
        times["longest_frame"] = tab.evaluate(SCROLL)
        times["unfold"] = tab.evaluate(UNFOLD)
        tab.evaluate(SCROLL)
        tab.wait_for_function(LIVE)
        times["rows"], table = tab.evaluate(LARGEST)
        times["sort"] = statistics.median(tab.evaluate(SORT, table) for _ in range(9))
        browser.close()
    return times


def browser_rows(of: str, times: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a page that was opened."""
    return [
        figure(f"{of}, opened in a browser: loaded after", times["load"], "s"),
        figure("  first painted after", times["paint"], "s", PAINT),
        figure("  longest task until it is loaded", times["longest_task"], "s"),
        figure("  longest frame while scrolling through", times["longest_frame"], "s"),
        figure("  all its parts unfolded in", times["unfold"], "s"),
        figure(f"  sorting {times['rows']:,} rows after a click", times["sort"], "s"),
    ]


def of_layouts(rows: int, folder: Path) -> list[dict[str, Any]]:
    """The import of a sweep of so many layouts, and its page."""
    table = folder / f"layouts_{rows}.csv"
    table.write_text(layout_table(rows), "utf-8")
    results = folder / f"results_{rows}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call = [sys.executable, "-m", "scalesweep", "import", str(table), "--map", str(MAP)]
    subprocess.run([*call, "--results", str(results)], check=True, cwd=ROOT, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    page = results / "report.html"
    of = f"report of {rows:,} layouts"
    made = [
        figure(f"{of}: CPU time of the import and all its steps", cpu, "s"),
        figure(f"{of}: the page", page.stat().st_size / 1e6, "MB", SIZE_MB),
    ]
    times = opened(page)
    return made + (browser_rows(of, times) if times else [])


def measure(
    repeats: int = 10, largest: int = 1024, rounds: int = 2, layouts: int = 0
) -> Iterator[dict[str, Any]]:
    """Medians of so many rounds; a tenth of 10,010 runs a repeat, of up to so many ranks; of a
    sweep of so many ``layouts`` instead if there are any."""
    with tempfile.TemporaryDirectory() as scratch:
        if layouts:
            yield from of_layouts(layouts, Path(scratch))
            return
        made = make(Path(scratch) / "large", repeats, largest)
        made.plan()
        take_steps(made, "summarise", "accounting")
        taken = [take_steps(made, *STEPS) for _ in range(rounds)]
        page = made.results / "report.html"
        size_mb = page.stat().st_size / 1e6
        drawn = len(list((made.results / "figures").glob("*/*.svg")))
        browser = opened(page)
    of = f"of {len(made.done):,} runs"
    whole = statistics.median(sum(cost.wall_s for cost in costs.values()) for costs in taken)
    yield figure(f"report {of}: tables, {drawn} figures and page", whole, "s", SECONDS)
    for name in taken[0]:
        took = statistics.median(costs[name].wall_s for costs in taken)
        yield figure(f"  of these {name}", took, "s")
    cpu = statistics.median(sum(cost.cpu_s for cost in costs.values()) for costs in taken)
    yield figure("  CPU time of these steps", cpu, "s")
    yield figure(f"report {of}: the page", size_mb, "MB", SIZE_MB)
    if browser:
        yield from browser_rows(f"report {of}", browser)


if __name__ == "__main__":
    run(measure)
