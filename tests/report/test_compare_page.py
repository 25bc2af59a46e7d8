"""The page of a comparison in a real browser."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalesweep.compare.inputs import read_sides
from scalesweep.compare.run import compare
from scalesweep.config.campaign import Campaign
from tests.fakes.results import Fake, make_results
from tests.report.visits import CONTRAST, NEEDED, Visit

pytestmark = [pytest.mark.browser, NEEDED]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("comparison")
    axes = {"ranks": [1, 2, 4, 8], "batch_size": [1, 2, 4, 8]}
    for name, factor in (("before", 1.0), ("after", 1.1)):
        speed = lambda point, factor=factor: factor * point["batch_size"]  # noqa: E731
        make_results(root / name, [Fake("io", axes, speed=speed)], name)
    here = cast(Campaign, SimpleNamespace(results=root, site=SimpleNamespace(name="x")))
    compare(*read_sides(str(root / "before"), str(root / "after"), here), root)
    return root / "compare.html"


def test_it_sorts_by_the_numbers(browser: Any, page: Path) -> None:
    visit = Visit(browser, page.as_uri())
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    table = visit.page.locator("table.data").first
    heading = table.locator("thead th", has_text="Ratio").first
    heading.click()
    visit.page.wait_for_function("e => e.ariaSort === 'ascending'", arg=heading.element_handle())
    place = heading.evaluate("e => e.cellIndex")
    cells = table.locator(f"tbody tr > :nth-child({place + 1})")
    values = [float(cell.get_attribute("data-order")) for cell in cells.all()]
    assert len(values) == 16 or len(values) == 25
    assert values == sorted(values)
    assert visit.violations() == []
    assert visit.said == [] and visit.asked == [page.as_uri()]
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, page: Path, scheme: str) -> None:
    visit = Visit(browser, page.as_uri(), 390, scheme)
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    assert visit.page.evaluate(CONTRAST)["bad"] == []
    visit.context.close()
