"""Which gates run: the quick ones, or, with ``GATES=whole`` (`make gates`), all at full length."""

import os

import pytest

WHOLE = os.environ.get("GATES") == "whole"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked ``whole`` out of `make test`."""
    left_out = [] if WHOLE else [item for item in items if item.get_closest_marker("whole")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def whole() -> bool:
    """Whether gates run at full length."""
    return WHOLE
