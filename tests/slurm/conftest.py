"""A test cluster for each file of tests."""

import tempfile
from collections.abc import Iterator

import pytest

from tests.slurm.cluster import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(tempfile.mkdtemp(prefix="slurm-")) as running:
        yield running
