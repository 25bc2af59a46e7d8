"""The job specification of a run of the toy program (``tests/toy``), for the launcher."""

import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.soak.launching import order

TOY = ROOT / "tests" / "toy" / "main.py"


def spec(folder: Path, behaviour: str = "good", **changes: Any) -> dict[str, Any]:
    """A run of two ranks below ``folder``; ``behaviour`` is what the program does."""
    params = {"ranks": 2, "ranks_per_node": 2, "size": 3, "behaviour": behaviour}
    argv = [sys.executable, str(TOY), "--run", "{run_file}"]
    own = {"params": params, "argv": argv, "env": {"TOY_THREADS": "7"}}
    return order(folder / "toy-r2-0123456789ab", "", **own | changes)
