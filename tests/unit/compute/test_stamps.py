"""Stamps that programs print of their steps: arrays as a native program's, and what cannot be."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from scalesweep.compute.log_metrics import Reading, UnreadableError
from scalesweep.compute.stamp_arrays import read_stamps
from scalesweep.core.record import OF_STAMPS
from tests.acceptance.faults import Noise, Program, always, planted_run
from tests.fakes.stamps import UNIX, line, lines_of

WARM = 4


def read(
    work: Path, text: str, ranks: int, wall_s: float | None = None, warmup: int = 0
) -> Reading:
    (work / "stdout.log").write_text(text)
    return read_stamps({"source": "stdout", "warmup": warmup}, work, ranks, False, wall_s)


def flat(lines: Sequence[Sequence[str]]) -> str:
    return "".join(text for step in lines for text in step)


def small(steps: int = 10) -> list[list[str]]:
    return lines_of(planted_run(Program(), 2, steps), samples=8)


@pytest.mark.parametrize("sealed", [True, False])
def test_printed_steps_are_the_arrays_of_a_native_program(tmp_path: Path, sealed: bool) -> None:
    """With a straggler and a slow reader. (Their account: acceptance/test_planted_runs.)"""
    faults = {"compute": always(12, 2), "input": always(30, 1)}
    planted = planted_run(Program(faults=faults), 4, 44, noise=Noise(step=0.2, run=0.1))
    lines = lines_of(planted, sealed, samples=16, tokens=160)
    lines[0].insert(0, line(sealed, rank=1, host="n1", versions={"torch": "2.13.0"}))
    rng = random.Random(1)
    for step in lines:
        rng.shuffle(step)  # one pipe; and what the program prints besides
        step.insert(1, "loss 0.3 \x1b[32mepoch\x1b[0m 1:  50%|=== ")
        # Text that names the marker is no damaged line.
        step.insert(0, "saved /data/@spans 2/model.pt, see @spans lines\nfor @spans \n")
    stamped = read(tmp_path, flat(lines), 4, warmup=WARM)
    assert stamped.warnings == []
    arrays = stamped.arrays
    assert set(arrays) <= OF_STAMPS
    for name, values in planted.items():
        near = 3e-6 if name == "span_between" else 1e-7
        assert arrays[name] == pytest.approx(values[WARM:], abs=near)
    assert arrays["warmup_step_times"] == pytest.approx(planted["step_times"][:WARM], abs=1e-7)
    seconds = (planted["step_times"] + planted["span_between"])[WARM:].sum(axis=0).max()
    rates = [stamped.metrics[f"{n}_per_second"]["value"] for n in ("samples", "tokens")]
    assert rates == pytest.approx([16 * 4 * 40 / seconds, 160 * 4 * 40 / seconds], rel=1e-5)
    # All steps, as a benchmark's `work` counts them: of these the step of a rate is worked out.
    every = stamped.notes["spans"]["steps_per_epoch"] * stamped.notes["batch"]["global"]
    assert stamped.work["samples_per_epoch"] == every == 64 * (40 + WARM)
    assert stamped.hosts == []  # those of the others are not known


def test_a_line_whose_digits_were_changed_is_damaged(tmp_path: Path) -> None:
    lines = small(steps=200)
    lines[50][1] = lines[50][1].replace('"s":0.0', '"s":0.9')
    with pytest.raises(UnreadableError, match=r"line 102 of stdout\.log is damaged, and others"):
        read(tmp_path, flat(lines) + line(False, rank=0, host="n1"), 2)
    stamped = read(tmp_path, flat(lines), 2)
    assert stamped.arrays["step_times"].shape == (198, 2)  # and the step behind it
    assert stamped.arrays["step_times"].max() < 0.2
    damaged, left_out = stamped.warnings
    assert damaged == "1 damaged lines are left out, the first is line 102 of stdout.log"
    assert left_out.startswith("1 of 200 steps are left out, because not every rank has printed")


def changed(step: int, old: str, new: str) -> str:
    """Lines with a text of one of rank 1 replaced, which has no checksum then."""
    lines = small()
    fields = json.loads(lines[step][1][len("@spans 01234567 ") :])
    text = json.dumps(fields, separators=(",", ":"))
    assert old in text
    lines[step][1] = f"@spans {text.replace(old, new)}\n"
    return flat(lines)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"samples":8', '"samples":NaN', "line 8 of stdout.log (rank 1): samples is nan, not a"),
        ('"input":', '"input":-', "line 8 of stdout.log (rank 1): input is -0.001"),
        ('"step":3', '"step":"3"', "(rank 1): step is '3', not a whole number of 0 or more"),
        ('"rank":1', '"rank":7', "line 8 of stdout.log is of rank 7, the run has 0-1"),
        ('"rank":1,', "", "line 8 of stdout.log: neither the line nor a label names the rank"),
        ('"input"', '"In put"', "span is 'In put', not up to 40"),
        ('"input"', '"wait"', "span is 'wait', not up to 40"),
        ('"samples":8', '"warmup":true', "step 3 of rank 1 is marked as warm-up, earlier ones"),
        ('"s":', '"t":', "lines need 's', the seconds of a step: step 3 of rank 1"),
        ('"samples":8', '"memory":8', "memory is 8, not bytes by allocated, reserved"),
        ('"step":3', '"step":4', "(rank 1): step 4 is printed twice, with different numbers: two"),
    ],
)
def test_what_would_be_a_wrong_number(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UnreadableError) as error:
        read(tmp_path, changed(3, old, new), 2)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_ranks_that_count_from_different_numbers_are_not_compared(tmp_path: Path) -> None:
    """Of 300 steps each has all but one, which is few enough to be left out."""
    text = "".join(
        line(rank=rank, epoch=3, step=step + rank, begin=UNIX + step, s=0.5)
        for step in range(300)
        for rank in range(2)
    )
    said = "rank 0 printed step 0 of epoch 3 to step 299 of epoch 3, rank 1 step 1 of epoch 3 to"
    with pytest.raises(UnreadableError, match=said):
        read(tmp_path, text, 2)


@pytest.mark.parametrize(
    ("old", "new", "said", "lacks"),
    [
        (f'"begin":{int(UNIX)}', f'"begin":{int(UNIX) - 60}',
         "a clock was set, or steps overlap: -60 s lie before step 6 of rank 1", "span_between"),
        ('"input"', '"wandering"',
         "span input is left out: step 6 of rank 1 has none; print 0 where it", "span_input"),
        ('"samples":8', '"clock":"host"',
         "samples_per_second is not known: step 6 of rank 1 has none (samples)", "span_compute"),
        ('"samples":8', '"clock":"host"',
         "rank 1 computes on a GPU and stamps without 'synchronize'", "span_communication"),
        ('"input":', '"forward":0,"input":',
         "span forward is left out: rank 0 prints none", "span_forward"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_left_out_with_a_warning(
    tmp_path: Path, old: str, new: str, said: str, lacks: str
) -> None:
    stamped = read(tmp_path, changed(6, old, new), 2)
    assert any(said in warning for warning in stamped.warnings), stamped.warnings
    assert lacks not in stamped.arrays and "step_times" in stamped.arrays
    assert stamped.notes["stamps"]["warnings"] == stamped.warnings


def test_parts_add_up_to_their_span(tmp_path: Path) -> None:
    def steps(**spans: float) -> str:
        return "".join(
            line(rank=0, step=n, begin=UNIX + n, s=0.9, spans={"input": 0.1, **spans})
            for n in range(6)
        )

    parts = {"forward": 0.2, "backward": 0.3, "optimizer": 0.1}
    stamped = read(tmp_path, steps(**parts, validation=0.01, augment=0.02), 1)
    assert stamped.arrays["span_compute"][:, 0] == pytest.approx([0.6] * 6)
    assert not stamped.arrays["span_communication"].any()  # one rank: with nobody
    assert stamped.metrics["span_augment"]["value"] == pytest.approx(0.02)
    assert "span_augment" not in stamped.arrays and "span_validation" in stamped.arrays
    stamped = read(tmp_path, steps(**parts, compute=0.4), 1)
    assert "span_forward" not in stamped.arrays
    (warning,) = stamped.warnings
    assert warning.startswith("forward, backward, optimizer add up to 3.6 s, compute to 2.4 s")


def test_epochs_give_the_times_of_epochs(tmp_path: Path) -> None:
    lines = [
        line(
            rank=rank, epoch=epoch, step=step, begin=UNIX + 100 * epoch + step, s=0.5 + 0.1 * rank,
            samples=2, warmup=(epoch, step) == (0, 0),
        )
        for epoch in range(3)
        for step in range(4)
        for rank in range(2)
    ]  # fmt: skip
    stamped = read(tmp_path, "".join(lines), 2)
    arrays = stamped.arrays
    assert arrays["local_times"] == pytest.approx(np.array([[3.5, 3.6]] * 3))
    assert arrays["global_times"] == pytest.approx(np.array([[3.6, 3.6]] * 3))
    assert arrays["step_times"].shape == (11, 2) and arrays["warmup_step_times"].shape == (1, 2)
    assert stamped.work == {"samples_per_epoch": 16}
    assert stamped.notes["spans"]["steps_per_epoch"] == 4


def timed(work: Path, wall_s: float, begin: float = 1, late: float = 0, s: float = 1) -> Reading:
    """Two ranks' 20 steps of 100 ms, 10 ms apart: those of rank 1 ``s`` times as long, all
    beginning at ``begin`` times the second, and from the tenth on ``late`` seconds later."""
    spans = {"input": 0.01, "forward": 0.03, "backward": 0.05, "communication": 0.01}
    text = "".join(
        line(rank=rank, step=step, begin=begin * (UNIX + 0.11 * step) + late * (step > 9),
             s=0.1 * s**rank, spans=spans, samples=8)
        for rank in range(2)
        for step in range(20)
    )  # fmt: skip
    return read(work, text, 2, wall_s)


# Milliseconds, and a clock that was set.
@pytest.mark.parametrize("change", [{"begin": 1000}, {"late": 3600}])
def test_time_that_the_run_did_not_take(tmp_path: Path, change: dict[str, float]) -> None:
    true = timed(tmp_path, 2.2)
    assert true.warnings == [] and "span_between" in true.arrays
    stamped = timed(tmp_path, 2.2, **change)
    (warning,) = stamped.warnings
    assert "(a clock was set, or steps overlap: " in warning
    assert "span_between" not in stamped.arrays
    assert "samples_per_second" not in stamped.metrics  # others' rates are of more than their steps
    assert stamped.metrics["step_times"] == pytest.approx(true.metrics["step_times"])
    assert stamped.work == true.work


def test_steps_that_add_up_to_more_than_their_run_are_refused(tmp_path: Path) -> None:
    said = "stamps: the steps of rank 1 add up to 2000 s, and the run took 2.5 s: print seconds"
    with pytest.raises(UnreadableError, match=said):
        timed(tmp_path, 2.5, s=1000)
