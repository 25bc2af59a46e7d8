"""The Python with PyTorch that tests start torch_training with: the one that `make torch` makes."""

from pathlib import Path

import pytest

TORCH = Path(__file__).parents[2] / ".torch" / "bin" / "python"

needs_torch = pytest.mark.skipif(not TORCH.exists(), reason="PyTorch is missing: make torch")
