"""A program that takes its own folder away has failed, with that cause."""

import json
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.compute.log_metrics import digest_of_metrics
from tests.conftest import ROOT
from tests.soak.launching import order

EXTRACT: dict[str, Any] = {
    "metrics": [], "digest": digest_of_metrics([]), "srun_labels": False, "work": {}
}  # fmt: skip


@pytest.mark.parametrize("extract", [True, False])
@pytest.mark.parametrize(
    "words",
    [
        "shutil.rmtree(sys.argv[2])",
        "shutil.rmtree(os.path.dirname(sys.argv[2]))",
        "shutil.rmtree(sys.argv[2]); open(sys.argv[2], 'w').close()",
        "shutil.rmtree(sys.argv[2]); sys.exit(3)",
    ],
)
def test_a_program_that_removes_its_folder(tmp_path: Path, words: str, extract: bool) -> None:
    more = {"extract": EXTRACT} if extract else {}
    spec = order(tmp_path / "runs" / "a", f"import os, shutil, sys; print(); {words}", **more)
    assert launch(spec, ROOT) == 1
    failure = json.loads((tmp_path / "runs" / "a" / "failure.json").read_bytes())
    assert failure["cause"] == "BAD_RESULT"
    assert failure["detail"] == "the program removed its folder attempt-1, with its logs"
    assert (tmp_path / "runs" / "a" / "attempt-1").is_dir()
