"""What several modules of tests/workflow share."""

import pytest

from tests.conftest import Project
from tests.workflow.small_campaigns import run_small_campaigns


@pytest.fixture(scope="session")
def small_campaigns(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The shipped small campaigns, finished; tests leave it as it is.

    The modules that use it are one group of tests (tests/scheduling.py).
    """
    return run_small_campaigns(tmp_path_factory.mktemp("small"))
