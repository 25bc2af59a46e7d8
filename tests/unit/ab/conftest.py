"""What tests of A/B measure."""

from pathlib import Path

import pytest

from tests.fakes.tracked import Tracked, make_tracked


@pytest.fixture
def tracked(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Tracked:
    """A tracked program; its folder's parent is the working folder."""
    monkeypatch.chdir(toy)
    return make_tracked(toy)
