"""resources/spans/scalesweep_spans.py, which users copy: what it prints is what was timed."""

import importlib.util
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.rank_variables import LAUNCHERS
from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import Reading
from scalesweep.compute.stamp_arrays import read_stamps
from scalesweep.compute.stamps import stamp_lines
from tests.conftest import ROOT


class Clock:
    """What the module takes for ``time``: steps take what a test lets pass. Its writer sleeps."""

    def __init__(self) -> None:
        self.now, self.time, self.sleep = 1000.0, self.perf_counter, time.sleep

    def perf_counter(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


ORDER: StampsOrder = {"source": "spans-*.jsonl", "warmup": 0}
RANKS = [launcher.rank for launcher in LAUNCHERS]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in RANKS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SCALESWEEP_SPANS", str(tmp_path))
    path = ROOT / "resources" / "spans" / "scalesweep_spans.py"
    spec = importlib.util.spec_from_file_location("scalesweep_spans", path)
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def clock(module: Any, monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


@pytest.fixture
def spans(module: Any, clock: Clock) -> Any:
    return module.Spans(every_s=60)


def read(spans: Any, folder: Path) -> tuple[Reading, dict[str, list[float]]]:
    """What was printed, and its arrays as lists."""
    spans.flush()
    reading = read_stamps(ORDER, folder, 1, False)
    return reading, {name: array.ravel().tolist() for name, array in reading.arrays.items()}


def test_ranks_have_the_numbers_that_the_harness_gives_them(module: Any) -> None:
    known = [name for name in RANKS if name in module.RANK]
    assert list(module.RANK) == known and len(known) == 6


def test_steps_are_printed_as_they_were(spans: Any, clock: Clock, tmp_path: Path) -> None:
    def batches() -> Iterator[list[int]]:
        for size in (4, 4, 2):
            clock.passes(0.002)
            yield [0] * size

    for batch in spans.steps(batches(), samples=len, epoch=0):
        spans.at("forward")
        clock.passes(0.004)
        spans.at("communication")
        if len(batch) == 2:
            break  # this step never ends
    with spans.span("validation"):
        clock.passes(0.003)
    spans.begin("input", was="logging")
    clock.passes(0.001)
    spans.end(samples=1, epoch=0, memory={"allocated": 5})
    spans.end(samples=99)  # none has begun
    if os.fork() == 0:  # a worker of a loader: what it inherits is not its own to print
        spans.flush()
        os._exit(0)
    os.wait()
    stamped, arrays = read(spans, tmp_path)
    assert arrays["step_times"] == pytest.approx([0.006, 0.006, 0.001])
    assert arrays["span_input"][:2] == pytest.approx([0.002, 0.002])
    # What was timed of the step that was left is gone.
    assert arrays["span_forward"] == pytest.approx([0.004, 0.004, 0])
    assert arrays["span_validation"][2] == pytest.approx(0.003)
    assert arrays["span_between"][2] == pytest.approx(0.009)
    assert stamped.metrics["peak_rss"]["value"] > 1e6
    assert stamped.metrics["peak_memory_allocated"]["value"] == 5
    assert stamped.hosts == [os.uname().nodename]


def test_left_and_nested_loops_print_no_steps(spans: Any, clock: Clock, tmp_path: Path) -> None:
    """A progress bar holds the batches of a loop that was left; and a validation has its loop."""
    held: list[Any] = []
    spans.span("training").__enter__()
    for epoch in np.arange(3):
        held.append(spans.steps([1, 2, 3], samples=np.int64(4), epoch=epoch))
        for batch in held[-1]:
            spans.at("forward")
            clock.passes(0.002)
            if batch == 3:
                break
            if epoch == 2:
                held.clear()  # closes the loops of the epochs before within this step
        clock.passes(0.02)
        with spans.span("validation"):
            for _ in spans.steps(range(2)):
                clock.passes(0.005)
    stamped, arrays = read(spans, tmp_path)
    assert stamped.work == {"samples_per_epoch": 8}
    assert stamped.warnings == []
    assert arrays["step_times"] == arrays["span_forward"] == pytest.approx([0.002] * 6)
    assert arrays["span_validation"] == pytest.approx([0, 0, 0.01, 0, 0.01, 0])
    assert arrays["span_between"] == pytest.approx([0, 0, 0.032, 0, 0.032, 0])


def test_an_activity_within_a_step_lies_after_it(spans: Any, clock: Clock, tmp_path: Path) -> None:
    """``if step % 2: with spans.span("validation")`` in the body of the loop."""
    for step in spans.steps(range(5)):
        spans.at("forward")
        clock.passes(0.002)
        if step % 2:
            with spans.span("validation"):
                clock.passes(0.01)
            clock.passes(0.001)
    _, arrays = read(spans, tmp_path)
    assert arrays["step_times"] == pytest.approx([0.002, 0.003, 0.002, 0.003, 0.002])
    assert arrays["span_forward"] == pytest.approx(arrays["step_times"])
    for name in ("span_validation", "span_between"):
        assert arrays[name] == pytest.approx([0, 0, 0.01, 0, 0.01])


def test_other_threads_take_no_time_of_a_step(spans: Any, clock: Clock, tmp_path: Path) -> None:
    """A thread reads ahead, one writes a checkpoint; and a hook runs in a thread of backward."""

    def beside() -> None:
        spans.at("input")
        for name in ("input", "checkpoint"):
            with spans.span(name):
                clock.passes(0.002)

    def within(work: Any) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    for _ in spans.steps(range(3)):
        spans.at("forward")
        within(beside)
        spans.at("backward")
        within(lambda: spans.at("communication"))
        clock.passes(0.003)
    _, arrays = read(spans, tmp_path)
    assert arrays["span_forward"] == pytest.approx([0.004] * 3)
    assert arrays["span_communication"] == pytest.approx([0.003] * 3)
    assert arrays["span_input"] == [0] * 3 and "span_checkpoint" not in arrays


def test_the_recipes_time_what_their_frameworks_do(
    module: Any, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The callbacks of docs/reference/stamps.md, called in the order in which Trainer and Lightning
    call them (transformers 5.23, lightning 2.6)."""
    page = (ROOT / "docs" / "reference" / "stamps.md").read_text()
    trainer, lightning = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for rank, code in enumerate((trainer, lightning)):
        monkeypatch.setenv("RANK", str(rank))
        names = {"Spans": module.Spans, "TrainerCallback": object, "Callback": object}
        exec(code, names)
        callback = names["SpansCallback"]()
        for epoch in range(2):
            (_trainer_epoch if rank == 0 else _lightning_epoch)(callback, epoch, clock)
        callback.spans.flush()
    assert {path.name for path in tmp_path.iterdir()} == {"spans-0.jsonl", "spans-1.jsonl"}
    stamped = read_stamps(ORDER, tmp_path, 2, False)
    assert not [warning for warning in stamped.warnings if "left out" not in warning]
    lines = stamp_lines(ORDER["source"], tmp_path, 2, False)
    steps = [each.fields for each in lines if "s" in each.fields]
    assert [(each["rank"], each["epoch"], each["samples"]) for each in steps] == [
        (rank, epoch, 8) for rank in range(2) for epoch in range(2) for _ in range(2)
    ]
    for each in steps:
        inside = ("input", "compute", "forward", "backward", "optimizer")
        assert sum(each["spans"].get(name, 0) for name in inside) <= each["s"] + 1e-6
    assert steps[1]["spans"]["compute"] == pytest.approx(0.003)
    assert steps[1]["spans"]["communication"] == 0
    # What lies between two steps is printed with the second.
    assert steps[1]["spans"]["validation"] == pytest.approx(0.002)
    assert steps[0]["spans"].get("validation", 0) == 0
    assert steps[2]["spans"]["checkpoint"] == pytest.approx(0.002)
    assert steps[6]["spans"]["validation"] == pytest.approx(0.002)


def _trainer_epoch(callback: Any, _epoch: int, clock: Clock) -> None:
    args = SimpleNamespace(per_device_train_batch_size=4, gradient_accumulation_steps=2)
    callback.on_epoch_begin(args, None, None)
    callback.on_step_begin(args, None, None)
    callback.on_step_end(args, None, None)
    clock.passes(0.002)
    callback.on_log(args, None, None, logs={"eval_loss": 1.0})
    callback.on_step_begin(args, None, None)
    callback.spans.at("communication")  # as the hook of spans.ddp does
    callback.spans.at("compute")
    clock.passes(0.003)
    callback.on_step_end(args, None, None)
    clock.passes(0.002)
    callback.on_save(args, None, None)


def _lightning_epoch(callback: Any, epoch: int, clock: Clock) -> None:
    trainer = SimpleNamespace(current_epoch=epoch)
    callback.on_train_epoch_start(trainer, None)
    for batch_idx in range(2):
        batch = ([0] * 8, None)
        callback.on_train_batch_start(trainer, None, batch, batch_idx)
        callback.on_train_batch_end(trainer, None, None, batch, batch_idx)
    clock.passes(0.002)
    callback.on_validation_end(trainer, None)
