"""One test cluster for all files of tests, which is handed on idle.

Tests that need a cluster of their own boot it (test_cluster.py).
"""

import tempfile
from collections.abc import Iterator

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.jobs import clear


@pytest.fixture(scope="session")
def booted() -> Iterator[Cluster]:
    with Cluster(tempfile.mkdtemp(prefix="slurm-")) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(booted: Cluster) -> Iterator[Cluster]:
    """The cluster; what a file leaves in its queue is cancelled."""
    yield booted
    clear(booted)
