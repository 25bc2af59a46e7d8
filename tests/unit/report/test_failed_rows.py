"""Rows of runs that failed: points with their cause, which nothing runs again."""

from pathlib import Path
from typing import Any

from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.links import Links
from scalesweep.report.sections import failed_points, without_result
from tests.fakes.imported_table import imported

HEAD = "gpus,tp,end,rate\n"
MAP: dict[str, Any] = {
    "name": "layouts",
    "parameters": {"ranks": {"column": "gpus"}, "tp": {"column": "tp"}},
    "metrics": {
        "rate": {"column": "rate", "unit": "tokens/s", "better": "higher", "scope": "total"}
    },
    "failed": {"column": "end", "values": {"OOM": "GPU_OUT_OF_MEMORY", "failed": "NOT_STATED"}},
}
ROWS = "8,1,ok,10\n8,2,oom,\n8,4,FAILED,\n8,1,failed,\n"


def test_rows_of_failed_runs_become_points_with_their_cause(tmp_path: Path) -> None:
    _, entry, tables = imported(tmp_path, HEAD + ROWS, MAP)
    ends = {(r["point"]["tp"], r["repeat"]): (r["status"], r["cause"]) for r in entry["runs"]}
    assert ends == {
        (1, 0): ("done", ""), (1, 1): ("failed", "NOT_STATED"),
        (2, 0): ("failed", "GPU_OUT_OF_MEMORY"), (4, 0): ("failed", "NOT_STATED"),
    }  # fmt: skip
    assert not any(run["to_run"] for run in entry["runs"])
    assert [run["detail"] for run in entry["runs"] if run["point"]["tp"] == 2] == [
        "column end: oom"
    ]
    assert tables["points"]["repeats"].tolist() == [1, 0, 0]
    results = ExperimentResults(entry, tables)
    runs = tmp_path / "runs" / "imported"
    ((_, _, count, lines),) = without_result(results, runs)
    assert count == 3 and set(lines) == {
        "NOT_STATED (column end: failed): 1 point (tp 1)",
        "GPU_OUT_OF_MEMORY (column end: oom): 1 point (tp 2)",
        "NOT_STATED (column end: FAILED): 1 point (tp 4)",
    }
    none = failed_points(results, runs, Links(tmp_path))
    assert none == {"rows": [], "left_out": 0}
