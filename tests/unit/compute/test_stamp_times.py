"""Times of printed steps against what a run can take, and activities that are timed in steps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.step_account import account_of
from scalesweep.compute.job_spec import StampsOrder
from scalesweep.compute.log_metrics import Reading, UnreadableError
from scalesweep.compute.stamp_arrays import read_stamps
from tests.fakes.stamps import UNIX, line

Step = dict[str, Any]
STEPS, SECONDS, PAUSE = 20, 0.1, 0.01


def steps_of(rank: int, count: int = STEPS) -> list[Step]:
    """Steps of 100 ms, 10 ms apart."""
    spans = {"input": 0.01, "forward": 0.03, "backward": 0.05, "communication": 0.01}
    return [
        {"rank": rank, "step": step, "begin": UNIX + step * (SECONDS + PAUSE), "s": SECONDS,
         "spans": dict(spans), "samples": 8}
        for step in range(count)
    ]  # fmt: skip


def read(work: Path, ranks: list[list[Step]], wall_s: float | None = None) -> Reading:
    (work / "stdout.log").write_text("".join(line(**each) for steps in ranks for each in steps))
    order: StampsOrder = {"source": "stdout", "warmup": 0}
    return read_stamps(order, work, len(ranks), False, wall_s)


def rate(stamped: Reading) -> float:
    return stamped.metrics["samples_per_second"]["value"]


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each | {"begin": 1000 * each["begin"]},  # milliseconds
        lambda each: each | {"begin": each["begin"] + 3600 * (each["step"] > 9)},  # it was set
    ],
)
def test_time_between_steps_that_the_run_did_not_take_is_not_known(
    tmp_path: Path, change: Callable[[Step], Step]
) -> None:
    plain = [steps_of(rank) for rank in range(2)]
    took = STEPS * (SECONDS + PAUSE)
    true = read(tmp_path, plain, took)
    assert true.warnings == [] and "span_between" in true.arrays
    stamped = read(tmp_path, [[change(each) for each in steps] for steps in plain], took)
    (warning,) = stamped.warnings
    assert "(a clock was set, or steps overlap: " in warning
    assert "span_between" not in stamped.arrays
    assert "samples_per_second" not in stamped.metrics  # others' rates are of more than their steps
    assert stamped.metrics["step_times"] == pytest.approx(true.metrics["step_times"])
    assert stamped.work == true.work


def test_steps_that_add_up_to_more_than_their_run_are_refused(tmp_path: Path) -> None:
    ranks = [steps_of(rank) for rank in range(2)]
    for each in ranks[1]:
        each["s"] *= 1000
    with pytest.raises(UnreadableError) as error:
        read(tmp_path, ranks, 2.5)
    assert str(error.value) == (
        "stamps: the steps of rank 1 add up to 2000 s, and the run took 2.5 s: print seconds, of "
        "steps that follow each other"
    )
    for each in ranks[0] + ranks[1]:
        del each["s"]
    with pytest.raises(UnreadableError, match="lines need 's', the seconds of a step"):
        read(tmp_path, ranks, 2.5)


@pytest.mark.parametrize("every", [5, 20])
@pytest.mark.parametrize("clock", ["begin", "none"])
def test_an_activity_within_a_step_lies_between_it_and_the_next(
    tmp_path: Path, every: int, clock: str
) -> None:
    """``if step % 100 == 99: with spans.span("validation")`` in the body of the loop."""
    count, took = 200, 0.5
    shapes = []
    for inside in (False, True):
        ranks = []
        for rank in range(2):
            steps, shift = steps_of(rank, count), 0.0
            for place, each in enumerate(steps):
                each["begin"] += shift
                each["spans"] |= {"validation": 0.0, "logging": 0.004}
                if place % every == every - 1:
                    shift += took
                    if inside:
                        each["s"] += took
                        each["spans"]["validation"] = took
                if place and place % every == 0 and not inside:
                    each["spans"]["validation"] = took
                if clock == "none":
                    del each["begin"]
            ranks.append(steps)
        shapes.append(read(tmp_path, ranks))
    outside, moved = shapes
    assert moved.warnings == outside.warnings
    assert moved.metrics["step_times"] == pytest.approx(outside.metrics["step_times"])
    assert rate(moved) == pytest.approx(rate(outside))
    for name in outside.arrays:
        assert moved.arrays[name] == pytest.approx(outside.arrays[name], abs=1e-6)
    account = account_of(moved.arrays, moved.notes, 2)
    assert account is not None
    assert account.terms["validation"] == pytest.approx(
        took * (count // every - 1) / count, rel=0.02
    )
    pause = PAUSE if clock != "none" else 0.004
    assert account.elapsed == pytest.approx(SECONDS + pause + account.terms["validation"], rel=0.01)
