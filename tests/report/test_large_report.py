"""The report of 10,000 runs: as usable as a small one."""

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from bench.lib.made_runs import make
from bench.lib.steps import PROCESSES, take_steps
from bench.report import SORT
from scalesweep.aspects.draw import write_figures
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from tests.fakes.pages import render
from tests.fakes.results import demo, make_results
from tests.report.visits import NEEDED, Visit, check_chart, check_export, check_sorting

pytestmark = [pytest.mark.browser, pytest.mark.slow, NEEDED]

# How much longer a click may take than in a report of 200 runs; of what a browser needs for a
# click anyhow there is much in both.
SLOWER = 10


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 10,192 runs, at 364 points of five experiments."""
    made = make(tmp_path_factory.mktemp("large") / "p", repeats=28, largest=8)
    made.plan()
    take_steps(made, "summarise", "accounting", "tables")
    # As SVG, which the page shows; PDF and PNG would take as long again.
    plan = read_plan(made.results / "plan.json")
    studies = [load_results(entry, made.results / "tables") for entry in plan["experiments"]]
    write_figures(studies, made.results / "figures", ("svg",), PROCESSES)
    take_steps(made, "page")
    return made.results / "report.html"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_results(tmp_path_factory.mktemp("small"), demo()[:2])
    render(root)
    return root / "report.html"


def test_it_is_complete_and_small(browser: Any, large: Path) -> None:
    assert large.stat().st_size < 10e6
    visit = Visit(browser, large.as_uri())
    # Until somebody scrolls no library runs and nothing is built, however many runs there are.
    assert visit.page.evaluate("[typeof jQuery, typeof vegaEmbed]") == ["undefined", "undefined"]
    assert visit.page.locator(".live, [data-drawn]").count() == 0
    visit.wake()
    ids = [visit.data(f"e{n}-runs")["raw"][0]["values"] for n in range(1, 6)]
    assert len({run_id for some in ids for run_id in some}) == 10_192
    check_export(visit, large, "e2-points")
    check_export(visit, large, "e1-runs")
    check_sorting(visit, "e1-runs")
    check_chart(visit.page.locator('[data-chart="e1-chart"]'))
    assert visit.said == []
    visit.context.close()


@pytest.mark.measured
def test_it_sorts_without_freezing(browser: Any, large: Path, small: Path) -> None:
    took = {}
    for page in (small, large):
        visit = Visit(browser, page.as_uri())
        visit.wake()
        took[page] = median(visit.page.evaluate(SORT, "e1-runs") for _ in range(7))
        visit.context.close()
    assert took[large] < SLOWER * took[small]
