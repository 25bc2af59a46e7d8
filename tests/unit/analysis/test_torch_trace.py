"""Traces of PyTorch's profiler: the account of a step, operations by device, and damaged files."""

import gzip
import json
from typing import Any

import pytest

from scalesweep.analysis.torch_trace import (
    BETWEEN,
    TorchTrace,
    read_torch_trace,
    torch_account,
    torch_operations,
    unpacked,
)
from scalesweep.analysis.trace_account import TraceAccount
from scalesweep.analysis.trace_operations import mean_over
from tests.fakes.torch_trace import event, on_cpu, on_gpu, text

MOST = 1 << 20


def trace(events: list[dict[str, Any]]) -> TorchTrace:
    return read_torch_trace(unpacked(text(events), MOST))


def account(events: list[dict[str, Any]]) -> TraceAccount:
    found = torch_account(trace(events))
    assert found is not None
    return found


def test_the_account_of_a_cpu() -> None:
    found = account(on_cpu())
    assert (found.steps, found.step_s) == (3, pytest.approx(0.010))
    expected = {"computation": 0.5, "communication": 0.2, "copies": None, "input": 0.1, "rest": 0.2}
    assert found.shares == pytest.approx(expected)


def test_the_account_of_a_gpu() -> None:
    found = account(on_gpu())
    expected = {
        "computation": 0.4, "communication": 0.1, "copies": 0.05, "input": 0.1, "rest": 0.35,
    }  # fmt: skip
    assert found.shares == pytest.approx(expected)


def test_steps_on_a_gpu_end_where_it_has_done_them() -> None:
    """The host is 40 ms ahead from its second step on: between its ends lie 2 and 10 ms, on the GPU
    30 and 30, and kernels of 24 in each."""
    events = [event("cpu_op", "aten::mm", 0, 1, **{"External id": 99})]
    for step, (host, gpu) in enumerate(zip((48, 50, 60), (50, 80, 110), strict=True)):
        name, number = "Optimizer.step#AdamW.step", {"External id": step + 1}
        events += [
            event("user_annotation", name, host - 1, 1, **number),
            event("gpu_user_annotation", name, gpu - 4, 4, 7, **number),
            event("gpu_user_annotation", name, gpu - 5, 1, 8, **number),  # another stream
            event("kernel", "gemm", gpu - 24, 24, 7, device=0, **{"External id": 99}),
        ]
    found = account(events)
    assert (found.steps, found.step_s) == (2, pytest.approx(0.030))
    assert found.shares["computation"] == pytest.approx(0.8)


def test_an_operation_that_waits_for_others_computes_in_those_it_calls() -> None:
    """An operation of DTensor calls its own on each rank, and the exchange in between."""
    waiting = [
        each
        for step in range(4)
        for each in (
            event("cpu_op", "aten::linear", 10 * step + 6, 2),
            event("cpu_op", "aten::mm", 10 * step + 6, 0.5),
            event("cpu_op", "_c10d_functional::wait_tensor", 10 * step + 6.5, 1.5),
        )
    ]
    assert account([*on_cpu(), *waiting]).shares["computation"] == pytest.approx(0.55)
    operations = torch_operations(trace([*on_cpu(), *waiting]))
    assert operations is not None
    times = {kind: time.seconds for _, kind, time in mean_over([operations])}
    assert times["aten::linear"] == pytest.approx(0.5e-3)  # of the one above; this has none


def test_steps_that_do_not_follow_on_each_other_are_left_out() -> None:
    met = [*on_cpu(), event("user_annotation", BETWEEN, 20.5, 0.1)]
    assert account(met).steps == 2
    other = [*on_cpu(), event("user_annotation", "Optimizer.step#Adam.step", 12, 1)]
    for events in (other, on_cpu()[:12], []):
        assert torch_account(trace(events)) is None and torch_operations(trace(events)) is None


def test_operations_by_device() -> None:
    operations = torch_operations(trace(on_gpu()))
    assert operations is not None
    times = {
        (device, kind): (time.seconds * 1e3, time.gradient_s * 1e3, time.calls)
        for device, kind, time in mean_over([operations])
    }
    expected = {
        ("CPU", "aten::mm"): (3.5, 2, 2), ("CPU", "aten::linear"): (0.5, 0, 1),
        ("CPU", "aten::add_"): (1, 0, 1), ("CPU", "aten::stack"): (0.5, 0, 1),
        ("GPU:0", "aten::mm"): (4, 3, 2), ("GPU:0", "(collectives)"): (3, 0, 1),
        ("GPU:0", "Memcpy HtoD"): (0.5, 0, 1),
    }  # fmt: skip
    assert times.keys() == expected.keys()
    for key, numbers in expected.items():
        assert times[key] == pytest.approx(numbers), key


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"traceEvents": 3}', b'{"traceEvents": [' + b"[" * 5000, b"\xff" * 9],
)
def test_what_is_no_trace_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):
        read_torch_trace(content)


def test_odd_events_are_left_out() -> None:
    odd = [
        None, 3, {}, {"ph": "X"}, {**event("cpu_op", "aten::mm", 1, 1), "ts": "1"},
        {**event("cpu_op", "aten::mm", 1, 1), "dur": -5.0}, {**on_cpu()[1], "args": 3},
        {**event("kernel", "k", 100, 1), "args": {"device": [], "External id": "x"}},
        event("cpu_op", "aten::mm", 50, 1, **{"External id": {}}),
    ]  # fmt: skip
    assert account([*on_cpu(), *odd]).steps == 3  # type: ignore[list-item]


def test_a_file_that_is_cut_or_too_long_is_refused() -> None:
    whole = text(on_cpu())
    assert unpacked(b"{}", 1) == b"{}"
    for content, most in ((whole[:-9], MOST), (whole, 50), (b"\x1f\x8b" + b"x" * 9, MOST)):
        with pytest.raises(ValueError, match=r"gzip|longer"):
            unpacked(content, most)
    bomb = gzip.compress(bytes(64 << 20))
    with pytest.raises(ValueError, match="longer"):
        unpacked(bomb, MOST)
    huge = json.dumps({"traceEvents": [event("cpu_op", "x", 10.0**300, 1)]}).encode()
    assert torch_account(read_torch_trace(huge)) is None
