"""The page of a history in a real browser."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.history_settings import HistorySettings
from scalesweep.history.run import write_history
from tests.fakes.history import make_history
from tests.report.visits import CONTRAST, NEEDED, Visit

pytestmark = [pytest.mark.browser, NEEDED]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    make_history(folder)
    write_history(HistorySettings(folder))
    return folder / "history.html"


def test_it_is_sound_and_asks_for_nothing(browser: Any, page: Path) -> None:
    visit = Visit(browser, page.as_uri())
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    table = visit.page.locator("table.data").first
    heading = table.locator("thead th", has_text="Change").first
    heading.click()
    visit.page.wait_for_function("e => e.ariaSort === 'ascending'", arg=heading.element_handle())
    place = heading.evaluate("e => e.cellIndex")
    cells = table.locator(f"tbody tr > :nth-child({place + 1})").all()
    values = [float(cell.get_attribute("data-order")) for cell in cells]
    assert values == sorted(values) and len(values) == 5
    assert visit.violations() == []
    assert visit.said == [] and visit.asked == [page.as_uri()]
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, page: Path, scheme: str) -> None:
    visit = Visit(browser, page.as_uri(), 390, scheme)
    visit.page.evaluate("document.querySelector('table.data').scrollIntoView()")
    visit.page.wait_for_selector("table.data.dataTable")
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    size = visit.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert size[0] <= size[1]
    assert visit.page.evaluate(CONTRAST)["bad"] == []
    visit.context.close()
