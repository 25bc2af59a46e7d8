"""What the plan says of points that will not fit the memory of their ranks."""

from pathlib import Path
from typing import Any

from scalesweep.planning.memory_text import fit_of
from scalesweep.planning.plan import build_plan
from scalesweep.planning.plan_text import plan_text
from scalesweep.state.run_state import RunState
from tests.unit.config.test_shapes import campaign

HEAD = "states,activations,logits,overhead,spread,peaks\n"


def plan_of(folder: Path, state: str = "new", **keys: Any) -> str:
    loaded = campaign(folder, **keys)
    text = plan_text(build_plan(loaded, dict.fromkeys(loaded.unique_runs(), RunState(state))))
    return "\n".join(line for line in text.splitlines() if line.startswith("memory"))


def test_the_plan_names_points_that_will_not_fit(tmp_path: Path) -> None:
    line = plan_of(tmp_path, memory_gib_per_rank=14)
    assert line == (
        "memory in e (by the default constants): 1 point of 3 may not fit: 10.2 of 14.0 GiB at "
        "batch_size 8; 1 point of 3 will not fit, likely: 73.9 of 14.0 GiB at batch_size 64"
    )
    linked = [{"batch_size": 64, "checkpointing": "none"}]
    line = plan_of(tmp_path, memory_gib_per_rank=14, axes={"seed": [1]}, linked=linked)
    assert line.endswith(": 73.9 of 14.0 GiB at batch_size 64, checkpointing none")
    assert plan_of(tmp_path, memory_gib_per_rank=900) == ""
    assert plan_of(tmp_path) == ""  # the site does not say what a node has
    assert plan_of(tmp_path, "done", memory_gib_per_rank=14) == ""  # nothing is left to run


def test_constants_of_an_earlier_call_are_used(tmp_path: Path) -> None:
    tables = tmp_path / "results" / "tables" / "e"
    tables.mkdir(parents=True)
    (tables / "memory_fit.csv").write_text(HEAD + "1,3,1,1e9,0.1,12\n")
    fit = fit_of(tables)
    assert (fit.activations, fit.peaks) == (3, 12)
    line = plan_of(tmp_path, memory_gib_per_rank=14)
    assert line.startswith("memory in e (fitted to 12 peaks): 2 points of 3 will not fit, likely: ")
