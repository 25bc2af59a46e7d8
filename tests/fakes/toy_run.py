"""The job specification of a run of the toy program (``tests/toy``), for the launcher."""

import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

TOY = ROOT / "tests" / "toy" / "main.py"


def spec(folder: Path, behaviour: str = "good", **changes: Any) -> dict[str, Any]:
    """A run of two ranks below ``folder``; ``behaviour`` is what the program does."""
    params = {"ranks": 2, "ranks_per_node": 2, "size": 3, "behaviour": behaviour}
    return {
        "run_id": "toy-r2-0123456789ab", "benchmark": "toy", "version": 1, "params": params,
        "repeat": 0, "site": "toy", "folder": str(folder / "toy-r2-0123456789ab"), "data": None,
        "node_local": "/tmp", "argv": [sys.executable, str(TOY), "--run", "{run_file}"],
        "env": {"TOY_THREADS": "7"}, "prologue": [], "time_limit_s": 60.0, "asked": None,
        "profile": "none", **changes,
    }  # fmt: skip
