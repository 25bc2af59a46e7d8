"""Meshes and models of published tables: kept with the runs, rows that contradict them refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.shapes import planned_mesh, planned_shape
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from tests.fakes.imported_table import imported

HEAD = "gpus,tp,pp,checkpointing,rate\n"
MAP: dict[str, Any] = {
    "name": "layouts",
    "parameters": {
        "ranks": {"column": "gpus"},
        "tp": {"column": "tp"},
        "pp": {"column": "pp"},
        "checkpointing": {"column": "checkpointing"},
    },
    "metrics": {
        "rate": {"column": "rate", "unit": "tokens/s", "better": "higher", "scope": "total"}
    },
    "mesh": [{"role": "dp", "ranks": "ranks / (tp * pp)"}, "tp", "pp"],
    "transformer": {
        "layers": 24, "width": 2048, "sequence": "2048 // tp", "gated": True,
        "recompute": "'full' if checkpointing else 'none'",
    },
}  # fmt: skip


def test_a_table_keeps_the_mesh_and_the_model_of_its_map(tmp_path: Path) -> None:
    text = HEAD + "8,1,1,true,10\n8,2,2,true,9\n16,1,1,false,19\n16,4,2,false,15\n"
    _, entry, _ = imported(tmp_path, text, MAP)
    points = [run["point"] for run in entry["runs"]]
    meshes = [planned_mesh(entry, point) for point in points]
    expected = [(p["ranks"] // (p["tp"] * p["pp"]), p["tp"], p["pp"]) for p in points]
    assert [tuple(mesh.values()) for mesh in meshes if mesh] == expected and len(points) == 4
    shapes = [planned_shape(entry, point) for point in points]
    assert {(s.layers, s.width, s.sequence, s.gated) for s in shapes if s} == {
        (24, 2048, 2048, True), (24, 2048, 1024, True), (24, 2048, 512, True)
    }  # fmt: skip
    assert [s.recompute for s in shapes if s] == [
        "full" if p["checkpointing"] else "none" for p in points
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("8,3,1,true,10", "dp = 2.66666666666667 is not a whole number of 1 or more ranks"),
        ("8,16,1,true,10", "dp = 0.5 is not a whole number of 1 or more ranks"),
        ("8,0,1,true,10", "fails: "),
        ("4096,4096,1,true,10", "transformer.sequence: must be a whole number above 0, not 0"),
    ],
)
def test_rows_whose_ranks_make_no_mesh_are_refused(tmp_path: Path, row: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text(f"{HEAD}8,1,1,true,9\n{row}\n")
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(MAP))
    runs = runs_of(load_map(tmp_path / "map.yaml", tmp_path / "t.csv"))
    assert len(runs.runs) == 1
    (refusal,) = runs.refusals
    assert reason in refusal.message and refusal.line == 3
