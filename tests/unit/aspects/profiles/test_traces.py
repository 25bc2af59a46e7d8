"""Traces of frameworks' profilers: accounts of a step, the tables, late ranks, damaged files."""

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.kineto_stream import BETWEEN, read_stream
from scalesweep.analysis.trace_account import TraceAccount, account_of_rank
from scalesweep.analysis.xplane import CPU, PIPELINE, read_steps
from scalesweep.aspects.profiles.table import late_ranks
from scalesweep.aspects.profiles.traces import (
    CollectiveTime,
    RankLateness,
    TraceOperation,
    TracePart,
    trace_rows,
)
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.profiles.detect import read_source
from scalesweep.report.page_tables import profile_tables
from scalesweep.table.declared import frame_of
from tests.fakes import torch_trace
from tests.fakes.finding_rows import only
from tests.fakes.plan import whole_plan
from tests.fakes.records import make_record, profiled_run
from tests.fakes.table_inputs import of_files
from tests.fakes.xplane import STEP, Trace, on_cpu, on_gpu, xspace
from tests.unit.analysis.test_kineto import steps, text_of, write


def of_tensorflow(trace: Trace) -> TraceAccount | None:
    read = read_steps(xspace(trace, begin_ns=1_700_000_000_000_000_000))
    return read and read[0]


def of_torch(events: list[dict[str, Any]]) -> TraceAccount | None:
    content = gzip.decompress(torch_trace.text(events))
    return account_of_rank(read_stream(io.BytesIO(content)))


SHARES = {
    # Horovod's asynchronous operations are in no trace of a CPU.
    "tensorflow, CPU": (of_tensorflow, on_cpu(), (0.6, None, None, 0.1, 0.3)),
    # 6 of 10 ms kernels, 2 of the 4 ms of NCCL behind them, half a copy, 1 ms of input.
    "tensorflow, GPU": (of_tensorflow, on_gpu(), (0.6, 0.2, 0.05, 0.1, 0.05)),
    # Of the input 0.5 ms are an operation.
    "torch, CPU": (of_torch, torch_trace.on_cpu(), (0.55, 0.2, None, 0.05, 0.2)),
    "torch, GPU": (of_torch, torch_trace.on_gpu(), (0.4, 0.1, 0.05, 0.1, 0.35)),
}


@pytest.mark.parametrize("case", SHARES)
def test_the_parts_of_a_step(case: str) -> None:
    read, trace, expected = SHARES[case]
    account = read(trace)  # type: ignore[operator]
    assert account.steps == 3
    assert account.window_s / 3 == pytest.approx(0.010, rel=1e-4)
    shares = [part and part / account.window_s for part in account.parts.values()]
    assert shares == [share and pytest.approx(share, abs=1e-3) for share in expected]


def test_windows_in_which_something_else_was_called_are_left_out() -> None:
    python = ("/host:CPU", "python")
    trace = dict(on_cpu())
    trace[python] = [*trace[python], ("EagerLocalExecute: HorovodAllgather", 20.2, 0.5)]
    account = of_tensorflow(trace)
    assert account is not None and account.steps == 2
    assert of_tensorflow({python: [(STEP, 0.0, 5.0)]}) is None
    met = of_torch(
        [*torch_trace.on_cpu(), torch_trace.event("user_annotation", BETWEEN, 20.5, 0.1)]
    )
    assert met is not None and met.steps == 2


def test_operations_by_device() -> None:
    """Of each step: what operations call is not theirs, and a node says what is of a gradient."""
    trace = dict(on_gpu())
    python = ("/host:CPU", "python")
    trace[python] = [
        *trace[python],
        *((f"{node}:{kind}", 10.0 * step + begin, length) for step in range(4)
          for node, kind, begin, length in (
              ("call", "_PartitionedCall", 2.0, 5.0), ("gradients/a/MatMul_1", "MatMul", 3.0, 1.0),
              ("model/gradient_boost/MatMul", "MatMul", 5.0, 0.5))),
    ]  # fmt: skip
    # Half of it before the first step that counts.
    trace["/device:GPU:1 NVIDIA", "Stream #4"] = [("MemcpyH2D", 9.0, 2.0), ("cast", 12.0, 3.0)]
    read = read_steps(xspace(trace, begin_ns=1_700_000_000_000_000_000))
    times = {each[:2]: (1e3 * each[2], 1e3 * each[3], each[4]) for each in read[1]}
    expected = {
        (CPU, "PartitionedCall"): (3.5, 0, 1), (CPU, "MatMul"): (1.5, 1, 2),
        (CPU, "Conv2D"): (4, 0, 1), (CPU, "MklMatMul"): (4, 4, 1),
        (CPU, "ReadVariableOp"): (2, 0, 1),
        ("GPU:0", "Conv2DBackpropInput"): (6, 6, 1), ("GPU:0", "(collectives)"): (4, 0, 1),
        ("GPU:0", "MemcpyD2H"): (0.5, 0, 1), (PIPELINE, "AddV2"): (10, 0, 0),
        ("GPU:1", "(kernels without an operation)"): (1, 0, 1 / 3),
        ("GPU:1", "MemcpyH2D"): (1 / 3, 0, 0),
    }  # fmt: skip
    assert times.keys() == expected.keys()
    for key, numbers in expected.items():
        assert times[key] == pytest.approx(numbers, abs=0.02), key


@pytest.mark.parametrize("content", [xspace(on_cpu())[:100], b"\xff" * 12, b"\x0b"])
def test_bytes_that_are_no_protobuf_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="no protobuf"):
        read_steps(content)


WRITTEN = {"tensorflow": "rank{}/plugins/profile/x/vm.xplane.pb", "torch": "rank{}.json.gz"}


def profiled(root: Path, name: str, ranks: list[bytes]) -> dict[str, Any]:
    """A run under the profiler with a file for each rank; its entry in the plan."""
    written = WRITTEN[name.rpartition(".")[2]]
    files = {written.format(number): content for number, content in enumerate(ranks)}
    return profiled_run(root, name, len(ranks), files)


def entry_of(profiles: list[dict[str, Any]], runs: list[dict[str, Any]]) -> Any:
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs, "fixed": {},
                                        "profiles": profiles}]})  # fmt: skip
    return plan["experiments"][0]


def results_of(entry: Any, rows: list[Any]) -> ExperimentResults:
    kinds = {type(row) for row in rows}
    frames = {kind.TABLE: frame_of([row for row in rows if type(row) is kind]) for kind in kinds}
    return ExperimentResults(entry, frames)


def test_the_tables_and_the_section(tmp_path: Path) -> None:
    entries = [
        profiled(tmp_path, "e-r2-00.tensorflow", [xspace(on_cpu()), xspace(on_gpu())]),
        profiled(tmp_path, "e-r1-00.tensorflow", [b"\xff" * 12]),
        profiled(tmp_path, "e-r3-00.tensorflow", [xspace({})] * 3),
        profiled(tmp_path, "e-r2-00.torch", [torch_trace.text(torch_trace.on_cpu())] * 2),
        profiled(tmp_path, "e-r1-00.torch", [b"{"]),
    ]
    entry = entry_of(entries, [])
    unread: list[str] = []
    rows = list(trace_rows(of_files(entry, tmp_path, unread)))
    assert unread == ["e-r1-00.tensorflow", "e-r1-00.torch"]
    parts = [row for row in rows if isinstance(row, TracePart)]
    assert {row.run_id for row in parts} == {"e-r2-00.tensorflow", "e-r2-00.torch"}
    first = {row.part: row for row in parts if row.run_id == "e-r2-00.tensorflow"}
    assert sum(row.share or 0 for row in first.values()) == pytest.approx(1)
    exchange = first["communication"]
    assert (exchange.least, exchange.most) == pytest.approx((0, 0.2), rel=1e-3)
    assert first["computation"].ms == pytest.approx(6, rel=1e-3)
    assert {(row.steps, row.traced_ranks) for row in parts} == {(3, 2)}
    operations = [row for row in rows if isinstance(row, TraceOperation)]
    # Of two ranks: the GPU of one of them.
    (kernels,) = [row for row in operations if row.operation == "Conv2DBackpropInput"]
    assert (kernels.device, kernels.ms) == ("GPU:0", pytest.approx(3, rel=1e-3))
    shown = profile_tables(results_of(entry, rows), 1000)[0]
    texts = [cell.text for cell in shown["rows"][1]]
    assert shown["label"] == "Trace"
    assert {"communication", "10.0 %", "0.0 %", "20.0 %"} <= {*texts}


def imported(tmp_path: Path, late_us: float) -> tuple[Any, list[Any]]:
    """An imported recording of 60 steps of two ranks, of which one is late."""
    texts = [text_of(steps(count=60)), text_of(steps(late_us, 5e6, count=60), 1)]
    (profile,) = read_source(write(tmp_path / "source", *texts)).profiles
    folder = tmp_path / "imported" / "p-r2-00"
    folder.mkdir(parents=True)
    write_record(folder, {**make_record("p-r2-00", attempt=1), "notes": dict(profile.notes)}, None)
    run = {"run_id": "p-r2-00", "repeat": 0, "point": {"ranks": 2}, "status": "done"}
    entry = entry_of([], [run])
    return entry, list(trace_rows(of_files(entry, folder.parent, [], ["p-r2-00"])))


def test_imported_traces_fill_the_tables(tmp_path: Path) -> None:
    entry, rows = imported(tmp_path, 150)
    calls = [row for row in rows if isinstance(row, CollectiveTime)]
    assert [(row.rank, row.calls, row.bytes) for row in calls] == [
        (0, 1.0, 4_000_000.0), (1, 1.0, 4_000_000.0),
    ]  # fmt: skip
    assert [row.exposed_ms for row in calls] == pytest.approx([0.2, 0.15])
    late = [row for row in rows if isinstance(row, RankLateness)]
    assert [(row.latest, row.clock_ahead_ms) for row in late] == [
        (False, 0.0), (True, pytest.approx(5000)),
    ]  # fmt: skip
    late_rank = only(late_ranks(results_of(entry, rows)))
    assert late_rank.state == "note"
    assert "rank 1 is last in 100.0 % of the collectives of group" in late_rank.sentence
    # Lateness that is no part of a step is no sentence.
    entry, rows = imported(tmp_path / "little", 5)
    (late,) = [row for row in rows if isinstance(row, RankLateness) and row.rank == 1]
    assert late.latest and late.late_median_ms == pytest.approx(5e-3)
    assert late_ranks(results_of(entry, rows)) == []
