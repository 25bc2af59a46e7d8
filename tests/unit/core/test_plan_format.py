"""plan.json: what was written is read, and a damaged one is one line."""

import json
from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.plan_format import read_plan
from tests.fakes.results import Fake, make_results


def test_a_damaged_plan_is_one_line(tmp_path: Path) -> None:
    path = make_results(tmp_path, [Fake("e", {"ranks": [1, 2]}, "weak")]) / "plan.json"
    plan = json.loads(path.read_text())
    assert read_plan(path) == plan
    entry = {key: value for key, value in plan["experiments"][0].items() if key != "axes"}
    for experiments, said in (([entry], "by another version of scalesweep"), (["x"], "not a plan")):
        path.write_text(json.dumps({**plan, "experiments": experiments}))
        with pytest.raises(UserError, match=f"{path}: .*{said}"):
            read_plan(path)
