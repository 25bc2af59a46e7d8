"""The Python with PyTorch that tests start torch_training with: the one that `make torch` makes."""

import os
from pathlib import Path

import pytest

TORCH = Path(__file__).parents[2] / ".torch" / "bin" / "python"

# CI makes it, and has tests that do not find it fail (.ci/run).
needs_torch = pytest.mark.skipif(
    not TORCH.exists() and os.environ.get("TESTS_WITHOUT_TORCH") != "fail",
    reason="PyTorch is missing: make torch",
)
