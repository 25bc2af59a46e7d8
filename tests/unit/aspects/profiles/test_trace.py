"""Traces of frameworks' profilers: TensorFlow's account of a step, the tables, damaged files."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.trace_account import TraceAccount, trace_account
from scalesweep.analysis.trace_operations import (
    CPU,
    PIPELINE,
    TraceOperations,
    mean_over,
    trace_operations,
)
from scalesweep.analysis.xplane import read_xplane
from scalesweep.aspects.profiles.trace import TraceOperation, TracePart, trace_rows
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.report.profiles_section import profiles_section
from scalesweep.table.declared import frame_of
from tests.fakes import torch_trace
from tests.fakes.plan import whole_plan
from tests.fakes.records import make_record
from tests.fakes.table_inputs import of_files
from tests.fakes.xplane import STEP, Trace, on_cpu, on_gpu, xspace


def account(trace: Trace) -> TraceAccount:
    found = trace_account(read_xplane(xspace(trace, begin_ns=1_700_000_000_000_000_000)))
    assert found is not None
    return found


def test_the_account_of_a_cpu() -> None:
    found = account(on_cpu())
    assert (found.steps, found.step_s) == (3, pytest.approx(0.010, rel=1e-4))
    assert found.shares["computation"] == pytest.approx(0.6, rel=1e-3)
    assert found.shares["input"] == pytest.approx(0.1, rel=1e-3)
    assert found.shares["rest"] == pytest.approx(0.3, rel=1e-3)
    # Horovod's asynchronous operations are in no trace of a CPU.
    assert found.shares["communication"] is None
    assert found.shares["copies"] is None


def test_the_account_of_a_gpu() -> None:
    """6 of 10 ms kernels, 2 of the 4 ms of NCCL behind them, half a copy, 1 ms of input."""
    shares = account(on_gpu()).shares
    expected = {
        "computation": 0.6,
        "communication": 0.2,
        "copies": 0.05,
        "input": 0.1,
        "rest": 0.05,
    }
    assert dict(shares) == pytest.approx(expected, rel=1e-3)


def test_collectives_on_the_host_and_what_lies_between_steps() -> None:
    trace = dict(on_cpu())
    key = ("/host:CPU", "tf_Compute/1")
    trace[key] = [
        *trace[key],
        # Named after a collective, and none: its type counts.
        ("HorovodBroadcast_conv_0/ReadVariableOp:ReadVariableOp", 0.0, 0.1),
        *(("gradient_0/HorovodAllreduce:HorovodAllreduce", 10.0 * n + 6, 3.0) for n in range(4)),
    ]
    found = account(trace)
    assert found.shares["communication"] == pytest.approx(0.2, rel=1e-3)
    # A barrier between two steps: their window is left out.
    python = ("/host:CPU", "python")
    trace[python] = [*trace[python], ("EagerLocalExecute: HorovodAllgather", 20.2, 0.5)]
    assert account(trace).steps == 2
    assert trace_account(read_xplane(xspace({python: [(STEP, 0.0, 5.0)]}))) is None
    assert trace_account([]) is None


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
    trace["/device:GPU:1 NVIDIA", "Stream #3"] = [("cast", 10.0 * step, 1.0) for step in range(4)]
    # Half of it before the first step that counts.
    trace["/device:GPU:1 NVIDIA", "Stream #4"] = [("MemcpyH2D", 9.0, 2.0)]
    operations = trace_operations(read_xplane(xspace(trace, begin_ns=1_700_000_000_000_000_000)))
    assert operations is not None and operations.steps == 3
    times = {
        (device, kind): (time.seconds * 1e3, time.gradient_s * 1e3, time.calls)
        for device, kind, time in mean_over([operations])
    }
    expected = {
        (CPU, "PartitionedCall"): (3.5, 0, 1), (CPU, "MatMul"): (1.5, 1, 2),
        (CPU, "Conv2D"): (4, 0, 1), (CPU, "MklMatMul"): (4, 4, 1),
        (CPU, "ReadVariableOp"): (2, 0, 1),
        ("GPU:0", "Conv2DBackpropInput"): (6, 6, 1), ("GPU:0", "(collectives)"): (4, 0, 1),
        ("GPU:0", "MemcpyD2H"): (0.5, 0, 1), (PIPELINE, "AddV2"): (10, 0, 0),
        ("GPU:1", "(kernels without an operation)"): (1, 0, 1),
        ("GPU:1", "MemcpyH2D"): (1 / 3, 0, 0),
    }  # fmt: skip
    for key, numbers in expected.items():
        assert times.pop(key) == pytest.approx(numbers, abs=0.02), key
    assert not times
    nothing = TraceOperations(3, {})
    halved = {(device, kind): time for device, kind, time in mean_over([operations, nothing])}
    assert halved["GPU:0", "Conv2DBackpropInput"].seconds == pytest.approx(0.003, rel=0.01)
    assert trace_operations([]) is None


@pytest.mark.parametrize("cut", [1, 3, 20, 100, -1])
def test_a_file_that_is_cut_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="no protobuf"):
        read_xplane(xspace(on_cpu())[:cut])


def test_bytes_that_are_no_protobuf_are_refused() -> None:
    for content in (b"\xff" * 12, b"\x0b", b'{"traceEvents": []}', b"\x08\x01\x0a\x02\x18\x01" * 2):
        try:
            lines = read_xplane(content)
        except ValueError:
            continue
        assert trace_account(lines) is None


WRITTEN = {"tensorflow": "rank{}/plugins/profile/x/vm.xplane.pb", "torch": "rank{}.json.gz"}


def profiled(root: Path, name: str, ranks: list[bytes], **changes: Any) -> dict[str, Any]:
    """A run under the profiler with a file for each rank; its entry in the plan."""
    folder = root / name
    kind = name.rpartition(".")[2]
    files = []
    for number, content in enumerate(ranks):
        path = folder / "attempt-1" / "profile" / WRITTEN[kind].format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(str(path.relative_to(folder / "attempt-1")))
    kept = make_record(name.partition(".")[0], attempt=1)
    write_record(folder, {**kept, "profile": {"kind": kind, "files": files}}, None)
    return {
        "run_id": name, "kind": kind, "point": {"ranks": len(ranks)}, "status": "done",
        "cause": "", "detail": "", "to_run": False, **changes,
    }  # fmt: skip


def test_the_table_and_the_section(tmp_path: Path) -> None:
    two = [xspace(on_cpu()), xspace(on_gpu())]
    entries = [
        profiled(tmp_path, "e-r2-00.tensorflow", two),
        profiled(tmp_path, "e-r1-00.tensorflow", [b"\xff" * 12]),
        profiled(tmp_path, "e-r3-00.tensorflow", [xspace({})] * 3),
    ]
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": [], "fixed": {},
                                        "profiles": entries}]})  # fmt: skip
    experiment = plan["experiments"][0]
    unread: list[str] = []
    made = list(trace_rows(of_files(experiment, tmp_path, unread)))
    table = frame_of(row for row in made if isinstance(row, TracePart))
    operations = frame_of(row for row in made if isinstance(row, TraceOperation))
    assert table is not None and operations is not None
    assert unread == ["e-r1-00.tensorflow"]
    rows = table.set_index("part")
    assert set(rows["run_id"]) == {"e-r2-00.tensorflow"}
    assert rows["share"].sum() == pytest.approx(1)
    assert rows.loc["communication", ["least", "most"]].tolist() == pytest.approx(
        [0, 0.2], rel=1e-3
    )
    assert rows.loc["computation", "ms"] == pytest.approx(6, rel=1e-3)
    assert (rows["steps"] == 3).all() and (rows["traced_ranks"] == 2).all()
    section = profiles_section(
        ExperimentResults(experiment, {"trace": table, "operations": operations}), tmp_path, str
    )
    (shown,) = section["traces"]
    assert (shown["where"], shown["ranks"]) == ("2 ranks", 2)
    assert shown["rows"][0]["share"] == "60.0 %"
    assert shown["rows"][1]["of_ranks"] == "0.0 % to 20.0 %"
    devices = operations.groupby("device")
    assert devices["share"].sum().tolist() == pytest.approx([1, 1, 1])
    # Of two ranks: the GPU of one of them.
    kernels = operations[operations["operation"] == "Conv2DBackpropInput"].iloc[0]
    assert (kernels["device"], kernels["ms"]) == ("GPU:0", pytest.approx(3, rel=1e-3))
    tables = section["operations"]
    assert [shown["device"] for shown in tables] == ["CPU", PIPELINE, "GPU:0"]
    assert tables[2]["rows"][0]["operation"] == "Conv2DBackpropInput"
    assert (tables[2]["ms"], tables[2]["gradient_ms"]) == ("5.25", "3.00")


def test_traces_of_torch_fill_the_same_tables(tmp_path: Path) -> None:
    entries = [
        profiled(tmp_path, "e-r2-00.torch", [torch_trace.text(torch_trace.on_cpu())] * 2),
        profiled(tmp_path, "e-r1-00.torch", [b"{"]),
    ]
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": [], "fixed": {},
                                        "profiles": entries}]})  # fmt: skip
    unread: list[str] = []
    made = list(trace_rows(of_files(plan["experiments"][0], tmp_path, unread)))
    assert unread == ["e-r1-00.torch"]
    parts = {row.part: row.share for row in made if isinstance(row, TracePart)}
    assert parts["computation"] == pytest.approx(0.5) and parts["copies"] is None
    operations = {row.operation: row.ms for row in made if isinstance(row, TraceOperation)}
    assert operations["aten::mm"] == pytest.approx(3.5)
