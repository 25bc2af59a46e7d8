"""Logs in MLPerf's format that are cut, damaged or not what they should be: named, or read."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes import mllog as fake
from tests.fakes.mllog import EPOCH, T0, Read, line, swap, training, why


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read logs of these lines."""
    return fake.reader_of(tmp_path)


BROKEN = len(fake.head()) + 2  # the line of the first epoch's evaluation


def broken(text: str) -> list[str]:
    """A run with another line instead."""
    lines = training()
    lines[BROKEN - 1] = f"{text}\n"
    return lines


def ending(*lines: str) -> list[str]:
    """A run with other lines instead of its last."""
    return [*training()[:-1], *lines]


def without(*words: str) -> list[str]:
    """A run without the lines that hold all of the words."""
    return [text for text in training() if not all(word in text for word in words)]


LAST = training()[-1]
EVALUATED = f'"time_ms": {T0 + 10_000 + EPOCH + fake.TRAINING}'
BLOCK = line("block_start", T0, first_epoch_num=3, epoch_count=4)
ENDLESS = [text for text in without("epoch_stop", '"epoch_num": 1') if "eval_error" not in text]
REFUSED: dict[str, tuple[list[str], str]] = {
    "of nothing": (without("submission_benchmark"), "no submission_benchmark"),
    "v0.5": ([":::MLPv0.5.0 ncf 1538678136.1 (./ncf.py:119) run_start\n"], "v0.6 or older"),
    "v0.6": ([':::MLL 1571433686.379 run_start: {"value": null}\n'], "v0.6 or older"),
    "no run_start": (fake.head()[:5], "no run_start"),
    "samples": (training(train_samples=4097), "train_samples 4,097 does not divide evenly among"),
    "batch": (training(global_batch_size=16), "global_batch_size 16 does not divide evenly among"),
    "no batch": (training(global_batch_size=None), "the log lacks global_batch_size"),
    "a batch in words": (training(global_batch_size="many"), "'many' is not a whole number"),
    "a huge number": (training(train_samples=10**400), "is not a whole number"),
    "a rate in words": (training(opt_base_learning_rate="x"), "'x' is not a rate"),
    "decay": (training(opt_learning_rate_decay_factor=[0.5]), "does not go with 2 boundaries"),
    "two batches": (ending(line("global_batch_size", T0, 128), LAST), "is 64 and 128"),
    "two errors": (ending(line("eval_error", T0, 0.3, epoch_num=1), LAST), "0.2 and 0.3: "),
    "an error in words": (swap(training(), '"value": 0.2,', '"value": "0",'), "'0' is no number"),
    "a gap": (without('"epoch_num": 1'), "epoch 1 is missing"),
    "no end": (ENDLESS, "epoch 1 has no end"),
    "backwards": (swap(training(), EVALUATED, f'"time_ms": {T0 + 10_000}'), "its end is earlier"),
    "run backwards": (ending(line("run_stop", T0)), "run_stop is not after run_start"),
    "after the end": (ending(line("run_stop", T0 + 50_000)), "epoch 0 ends after run_stop"),
    "half a line": (broken(training()[BROKEN - 1][:70]), "a damaged line: "),
    "an empty object": (broken(":::MLLOG {}"), "a damaged line: '{}'"),
    "a date beyond": (broken(line("eval_start", 10**18, epoch_num=0)), "a damaged line: "),
    "nothing whole": ([':::MLLOG {"namespace": "", "time'], "a damaged line and no intact one"),
    "nested": (broken(':::MLLOG {"a":' + "[" * 9000), "a damaged line"),
    "a block of epochs": (ending(BLOCK), "block_start of 4 epochs"),
    "half an epoch": (ending(line("epoch_start", T0, epoch_num=0.5)), "no whole number"),
    "no epoch": (ending(line("epoch_start", T0)), "epoch_start without epoch_num"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(read: Read, kind: str) -> None:
    lines, reason = REFUSED[kind]
    refusal = why(read, lines)
    assert reason in refusal.reason and "\n" not in refusal.message
    assert refusal.line is not None
    if reason.startswith("a damaged line: "):
        assert refusal.line == BROKEN


def test_the_rest_is_imported_beside_what_is_refused(read: Read) -> None:
    runs, refusals = read(training() + REFUSED["half a line"][0] + training(ms=T0 + 10**7))
    assert len(runs) == 2
    assert [refusal.line for refusal in refusals] == [len(training()) + BROKEN]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_never_stops_the_reader(read: Read, data: st.DataObject) -> None:
    text = "".join(training())
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 400)))
    middle = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    try:
        runs, refusals = read(text[:begin] + middle + text[end:])
    except Exception as error:  # only the refusal of a source without any log is allowed
        assert type(error).__name__ == "UserError", error
        return
    for run in runs:
        assert all(np.isfinite(metric["value"]) for metric in run.metrics.values())
        assert all(isinstance(message.message, str) for message in refusals)
