"""Rows of runs that failed: points with their cause, which nothing runs again."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.table_draft import draft_of
from scalesweep.importers.table_file import read_table
from scalesweep.importers.table_map import load_map
from scalesweep.report.links import Links
from scalesweep.report.sections import failed_elsewhere, failed_points
from tests.fakes.imported_table import imported

HEAD = "gpus,tp,end,rate\n"
MAP: dict[str, Any] = {
    "name": "layouts",
    "parameters": {"ranks": {"column": "gpus"}, "tp": {"column": "tp"}},
    "metrics": {
        "rate": {"column": "rate", "unit": "tokens/s", "better": "higher", "scope": "total"}
    },
    "failed": {"column": "end", "values": {"OOM": "GPU_OUT_OF_MEMORY", "failed": "NOT_STATED"}},
    "unfinished": {"column": "end", "values": ["cut"]},
}
ROWS = "8,1,ok,10\n8,2,oom,\n8,4,FAILED,\n8,8,cut,\n8,1,failed,\n"


def test_rows_of_failed_runs_become_points_with_their_cause(tmp_path: Path) -> None:
    _, entry, tables = imported(tmp_path, HEAD + ROWS, MAP)
    ends = {(r["point"]["tp"], r["repeat"]): (r["status"], r["cause"]) for r in entry["runs"]}
    assert ends == {
        (1, 0): ("done", ""), (1, 1): ("failed", "NOT_STATED"),
        (2, 0): ("failed", "GPU_OUT_OF_MEMORY"), (4, 0): ("failed", "NOT_STATED"),
        (8, 0): ("unfinished", "UNFINISHED"),
    }  # fmt: skip
    assert not any(run["to_run"] for run in entry["runs"])
    assert [run["detail"] for run in entry["runs"] if run["point"]["tp"] == 2] == [
        "column end: oom"
    ]
    assert tables["points"]["repeats"].tolist() == [1, 0, 0, 0]
    results = ExperimentResults(entry, tables)
    runs = tmp_path / "runs" / "imported"
    assert {(row["reason"], row["points"]) for row in failed_elsewhere(results, runs)} == {
        ("NOT_STATED (column end: failed)", "tp 1"),
        ("GPU_OUT_OF_MEMORY (column end: oom)", "tp 2"),
        ("NOT_STATED (column end: FAILED)", "tp 4"),
    }
    none = failed_points(results, runs, Links(tmp_path), {"failures": 10})
    assert none == {"rows": [], "left_out": 0}


def test_a_list_of_words_names_no_cause_and_an_empty_cell_can_be_one(tmp_path: Path) -> None:
    content = {**MAP, "failed": {"column": "end", "values": ["", "oom"]}}
    _, entry, _ = imported(tmp_path, HEAD + "8,1,ok,10\n8,2,OOM,\n8,4,,\n", content)
    assert [run["cause"] for run in entry["runs"]] == ["", "NOT_STATED", "NOT_STATED"]


@pytest.mark.parametrize(
    ("failed", "message"),
    [
        ({"column": "ends", "values": ["oom"]}, "failed.column"),
        ({"column": "end", "values": {"oom": "MEMORY"}}, "failed.values.oom"),
        ({"column": "end", "values": []}, "failed.values"),
        ({"column": "end"}, "values"),
    ],
)
def test_what_a_map_cannot_say_of_failed_rows(
    tmp_path: Path, failed: dict[str, Any], message: str
) -> None:
    (tmp_path / "t.csv").write_text(HEAD + ROWS)
    (tmp_path / "map.yaml").write_text(yaml.safe_dump({**MAP, "failed": failed}))
    with pytest.raises(UserError, match=message):
        load_map(tmp_path / "map.yaml", tmp_path / "t.csv")


def test_the_draft_tells_failed_from_cut(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "gpus,status,tok_s\n8,ok,10\n16,OOM,\n32,timeout,\n64,cancelled,\n128,failed,\n"
    )
    content = yaml.safe_load(draft_of(read_table(tmp_path / "t.csv")))
    assert content["failed"]["values"] == {
        "OOM": "OUT_OF_MEMORY", "failed": "NOT_STATED", "timeout": "TIMEOUT"
    }  # fmt: skip
    assert content["unfinished"]["values"] == ["cancelled"]
