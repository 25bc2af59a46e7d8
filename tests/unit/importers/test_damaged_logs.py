"""Importing damaged logs: what is refused by line, and that nothing is invented."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import ImportedRun
from tests.fakes import logs as fake
from tests.fakes.logs import LINES, TEXT, Read, command, gpus, labelled, one, rate, run


def step(number: int) -> str:
    """The line of progress of a step, with its end."""
    return next(line for line in LINES if line.startswith(f"{number}\timages")) + "\n"


def without(text: str) -> str:
    """TEXT without a part of it."""
    return TEXT.replace(text, "")


def instead(old: str, new: str) -> str:
    """TEXT with something else in a place."""
    return TEXT.replace(old, new, 1)


NOT_ONE = "total images/sec: 1000"
# What is left of TEXT, the reason, and how the line begins that the refusal names.
DAMAGE = {
    "no total": (
        TEXT[: TEXT.index("total im")],
        "cut: no 'total images/sec' behind step 100",
        "100",
    ),
    "cut in the total": (TEXT[: TEXT.index("1000.00") + 5], "cut: no 'total", "100\t"),
    "cut in the warm-up": (TEXT[: TEXT.index("Step\t")], "cut: no line of progress", "number of"),
    "no model": (without("Model:       alexnet\n"), "the header lacks Model", "++ "),
    "no devices": (instead("Devices: ", "Devises: "), "the header lacks Devices", "++ "),
    "no header": (TEXT[TEXT.index(step(1)) :], "lines of progress without a header", "1\t"),
    "a total alone": ("total images/sec: 1234.50\n", "a total without a header", "total"),
    "a step lost": (without(step(40)), "step 40 is missing", "100\t"),
    "the first step lost": (without(step(1)), "is of step 10, not 1", "100\t"),
    "a step damaged": (instead("40\timages/sec: ", "40\timages/sec: x"), "a damaged line", "40\t"),
    "mixed lines": (instead(step(30), step(30) + step(1)), "step 1 comes twice", "1\t"),
    "a hole": (instead("Running warm up\n", "Runn\0\0\0arm up\n"), "a damaged line", "Runn"),
    "two totals": (instead(fake.RULE, "total images/sec: 999.00"), "two totals", NOT_ONE),
    "another total": (instead("1000.00", "100.00"), "does not go with 990", "total"),
    "no rate": (instead("1000.00", "0.00"), "a total of 0", "total"),
    "batches": (instead("128 global", "256 global"), "a global batch of 256 is not 128", "++ "),
    "a batch that is none": (instead("128 global", "x global"), "not a whole number", "++ "),
    "not training": (instead("training", "forward-only"), "forward-only", "++ "),
    "no list of devices": (instead("['/gpu:0']", "[]"), "not a list of devices", "++ "),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_with_file_line_and_reason(read: Read, name: str, tmp_path: Path) -> None:
    damaged, reason, begin = DAMAGE[name]
    runs, (refusal,) = read(damaged, one(2000.0))
    assert [rate(found) for found in runs] == [2000.0]
    assert reason in refusal.reason
    numbers = [n for n, line in enumerate(damaged.split("\n"), 1) if line.startswith(begin)]
    assert refusal.line in numbers
    assert refusal.message.startswith(f"{tmp_path}/log0.txt:{refusal.line}: ")


def test_whole_runs_around_a_damaged_one_are_kept(read: Read) -> None:
    cut = TEXT[: TEXT.index("50\timages")]
    runs, (refusal,) = read(one(1100.0) + cut + one(1200.0) + one(1300.0))
    assert [rate(found) for found in runs] == [1100.0, 1200.0, 1300.0]
    begin = len(LINES) + 1
    assert refusal.line == begin + LINES.index(step(40).rstrip("\n"))
    assert f"alexnet, 1 devices, NCHW, parameter_server (from line {begin})" in refusal.reason


def test_a_command_that_was_lost(read: Read) -> None:
    runs, (refusal,) = read(one(1000.0) + gpus() + run(1170.0, devices=2))
    assert len(runs) == 1
    assert "no command before it" in refusal.reason


def test_a_total_that_stands_there_twice(read: Read) -> None:
    twice = TEXT.replace("total images/sec: 1000.00\n", "total images/sec: 1000.00\n" * 2)
    ((found,), refusals) = read(twice)
    assert refusals == []
    assert (rate(found), found.notes["totals"]) == (1000.0, ["1000.00"] * 2)


TWO, THREE = labelled(2, "[{}]<stdout>:"), labelled(3, "[{}]<stdout>:")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TWO.replace("[1]<stdout>:total images/sec", "[1]<stdout>:x"), "rank 1: cut"),
        (TWO.replace("[1]<stdout>:30\t", "[1]<stdout>:x\t"), "damaged"),
        (THREE.replace("[2]<stdout>:", "[2]<std"), "2 of 3 ranks"),
        (THREE.replace("[2]", "[1]"), "2 of 3 ranks"),
        (labelled(2, "").replace("total images/sec: 200.10\n", ""), "1 totals of 2 ranks"),
        (labelled(2, "").replace("200.10", "300.10"), "not of one job"),
        (TWO.replace("horovod/", "/").replace("horovod", "replicated"), "separate processes"),
    ],
)
def test_horovod_jobs_that_are_not_whole(read: Read, text: str, reason: str) -> None:
    runs, refusals = read(text)
    assert runs == []
    assert any(reason in refusal.reason for refusal in refusals), refusals


def test_garbage(read: Read, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8).tobytes()
    runs, _ = read(noise, one(1000.0), b"\0" * 5000, "")
    assert len(runs) == 1
    runs, refusals = read(noise + TEXT.encode())
    assert len(runs) + len(refusals) >= 1


LONG = (
    one(1000.0) + one(1170.0, "--local_parameter_device cpu", devices=2)
    + one(3000.0, model="resnet20", parameters=[271164.0])
    + command("--model resnet50 --variable_update horovod") + labelled(2, "[{}]<stdout>:")
)  # fmt: skip


def signature(found: ImportedRun) -> Any:
    return sorted(map(str, found.point.items())), rate(found)


@given(st.integers(0, len(LONG)), st.booleans())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_a_cut_log_never_invents_a_run(read: Read, place: int, at_line: bool) -> None:
    whole, _ = read(LONG)
    cut = LONG[: LONG.rfind("\n", 0, place) + 1] if at_line else LONG[:place]
    try:
        runs, _ = read(cut)
    except UserError:
        return
    assert [signature(found) for found in runs] == [signature(r) for r in whole[: len(runs)]]


@given(st.integers(0, len(LONG)), st.binary(max_size=30), st.integers(0, 60))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_no_damage_raises_anything_but_a_word_to_the_user(
    read: Read, place: int, noise: bytes, lost: int
) -> None:
    content = LONG.encode()
    try:
        runs, refusals = read(content[:place] + noise + content[place + lost :])
    except UserError:
        return
    for found in runs:
        assert rate(found) > 0 and np.isfinite(found.samples["images_per_second"]).all()
    assert all(
        isinstance(refusal.line, int) or "packed file is damaged" in refusal.reason
        for refusal in refusals
    )


@given(st.lists(st.sampled_from(LONG.splitlines(keepends=True)), max_size=40))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_in_any_order(read: Read, lines: list[str]) -> None:
    try:
        read("".join(lines))
    except UserError:
        return
