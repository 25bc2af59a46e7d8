"""Tables of profilers that were published: their functions come out of an import as printed.

``tests/published/exarl``: the kernels that Nsight Systems and the functions that TAU saw in a run
of ExaRL and of TensorFlow's example for images (github.com/exalearn/EXARL, issue 84).
"""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.profiles.functions import FunctionTime, function_rows
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.profile_runs import MadeRuns, runs_of
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.write_records import Written
from scalesweep.report.page_tables import profile_tables
from scalesweep.table.declared import frame_of
from tests.conftest import ROOT
from tests.fakes.imported_runs import import_runs
from tests.fakes.plan import whole_plan
from tests.fakes.table_inputs import of_files

Tables = list[dict[str, Any]]
PUBLISHED = ROOT / "tests" / "published" / "exarl"


def made_of(path: Path, ranks: int | None = None) -> MadeRuns:
    source = read_source(path, RankMap({}, ranks))
    assert not source.refusals and not source.others
    return runs_of(source.profiles, path)


def imported(results: Path, made: MadeRuns) -> list[Written]:
    written, refusals = import_runs(made.runs, results / "runs" / "imported")
    assert not refusals and not made.refusals
    return written


def table_of(results: Path, written: list[Written]) -> tuple[list[FunctionTime], Tables]:
    runs = [{"run_id": run.run_id, "point": run.point, "status": "done"} for run in written]
    (entry,) = whole_plan({"experiments": [{"runs": runs}]})["experiments"]
    done = [run.run_id for run in written]
    rows = list(function_rows(of_files(entry, results / "runs" / "imported", done=done)))
    frame = frame_of(rows)
    assert frame is not None
    shown = ExperimentResults(entry, {"functions": frame})
    return rows, profile_tables(shown, 1000)


def test_every_kernel_of_nsight_systems_keeps_its_numbers(tmp_path: Path) -> None:
    lines = (PUBLISHED / "nsys.txt").read_text().splitlines()[2:]
    made = made_of(PUBLISHED / "nsys.txt")
    rows, page = table_of(tmp_path, imported(tmp_path, made))
    assert len(rows) == len(lines) == 44
    for row, line in zip(rows, lines, strict=True):
        share, total, calls, mean, least, most, name = line.split(maxsplit=6)
        assert (row.function, row.calls, row.kind) == (name.strip(), int(calls), "kernel")
        times = (row.own_s, row.mean_s, row.min_s, row.max_s)
        printed = [float(word) * 1e-9 for word in (total, mean, least, most)]
        assert times == pytest.approx(printed, rel=1e-4)
        assert row.share is not None and 100 * row.share == pytest.approx(float(share), abs=0.051)
    assert rows[0].profiled_ranks == 1
    # Grouped by what can be acted on, as the issue asks, without a pattern of the user.
    total = sum(made.runs[0].parts.values())
    shares = {part: round(100 * s / total, 1) for part, s in made.runs[0].parts.items()}
    assert shares == {
        "optimizer": 10.6, "matrix": 25.9, "bias": 3.2, "reduction": 7.7, "layout": 0.0,
        "elementwise": 52.6,
    }  # fmt: skip
    (table,) = page
    assert len(table["rows"]) == 44
    names = [heading.text for heading in table["headings"]]
    first = dict(zip(names, (cell.text for cell in table["rows"][0]), strict=True))
    assert "ApplyAdamKernel" in first["Function"] and first["Share"] == "10.6 %"
    assert first["Calls"] == "75,000"


def test_taus_functions_and_their_time_in_mpi(tmp_path: Path) -> None:
    made = made_of(PUBLISHED / "pprof.txt", 8)
    parts = made.runs[0].parts
    assert parts["mpi"] == pytest.approx(268.3, abs=0.05)
    assert sum(parts.values()) == pytest.approx(1832.7, abs=0.05)
    assert parts["mpi"] / sum(parts.values()) == pytest.approx(0.146, abs=0.0005)
    rows, page = table_of(tmp_path, imported(tmp_path, made))
    assert len(rows) == 22
    (probe,) = [row for row in rows if row.function == "MPI_Probe()"]
    assert (probe.calls, probe.own_s, probe.part) == (3274.75, 263.892, "mpi")
    assert probe.mean_s == pytest.approx(80584e-6, rel=1e-4) and probe.profiled_ranks == 8
    assert probe.share == pytest.approx(0.144, abs=0.0005)
    assert probe.max_s is None and "Max, s" not in [heading.text for heading in page[0]["headings"]]
