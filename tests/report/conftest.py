"""The browser that the tests of a file share."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.visits import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running
