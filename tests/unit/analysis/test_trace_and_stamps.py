"""A run's trace beside its stamps: which steps are the same, and what each counts."""

from dataclasses import replace

import numpy as np
import pytest

from scalesweep.analysis.torch_trace import TorchTrace, read_torch_trace, unpacked
from scalesweep.analysis.trace_and_stamps import StampedSteps, side_by_side
from tests.fakes.torch_trace import event, text

LENGTHS = np.array([10.0, 14.0, 9.0, 21.0, 12.0, 11.0, 17.0, 13.0, 10.0, 15.0])  # ms


def trace_of(lengths: np.ndarray) -> TorchTrace:
    """Steps of such lengths: 6 ms of an operation, 2 of Gloo behind and 2 after it, the rest."""
    events, at = [event("user_annotation", "Optimizer.step#SGD.step", -1, 1)], 0.0
    for length in lengths.tolist():
        events += [
            event("cpu_op", "aten::mm", at, 4),
            event("user_annotation", "gloo:all_reduce", at + 3, 3, 8),
            event("user_annotation", "Optimizer.step#SGD.step", at + length - 1, 1),
        ]
        at += length
    return read_torch_trace(unpacked(text(events), 1 << 20))


def stamps_of(lengths: np.ndarray) -> StampedSteps:
    return StampedSteps(lengths / 1e3, (lengths - 2) / 1e3, np.full(len(lengths), 2e-3))


def test_the_same_steps_are_found_and_compared() -> None:
    """Two windows more at the front, which warmed up, and stamps of one step more at the end."""
    both = side_by_side(trace_of(LENGTHS[:9]), stamps_of(LENGTHS[2:]))
    assert both is not None and both.steps == 7
    mean = LENGTHS[2:9].mean() / 1e3
    assert both.trace_step == pytest.approx(mean) and both.step == pytest.approx(mean)
    assert both.trace_compute == pytest.approx(4e-3)
    assert both.trace_exchange == pytest.approx(2e-3) == both.exchange
    assert both.trace_compute + both.trace_rest == pytest.approx(both.compute)


def test_other_steps_are_not_compared() -> None:
    assert side_by_side(trace_of(LENGTHS), stamps_of(LENGTHS * 1.5)) is None
    assert side_by_side(trace_of(LENGTHS[:4]), stamps_of(LENGTHS[:4])) is None  # too few
    nothing = replace(trace_of(LENGTHS), windows=np.zeros((0, 2)))
    assert side_by_side(nothing, stamps_of(LENGTHS)) is None
