"""The page of a comparison in a real browser."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from scalesweep.commands.compare import compare
from scalesweep.compare.inputs import read_sides
from scalesweep.config.campaign import Campaign
from tests.fakes.results import Fake, make_results
from tests.report.visits import NEEDED, Visit, check_phone, check_sound, sorted_by_cells

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
    assert len(sorted_by_cells(visit, "Ratio")) in (16, 25)
    check_sound(visit, page.as_uri())
    visit.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, page: Path, scheme: str) -> None:
    check_phone(browser, page.as_uri(), scheme)
