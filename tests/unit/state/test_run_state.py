"""Records are written whole or not at all, and what cannot be trusted is never counted."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.locks import only_one
from scalesweep.core.record import RECORD, SAMPLES, read_record, read_samples, write_record
from scalesweep.state.run_state import INDEX, RunState, forget_unsupported, scan
from scalesweep.state.stock import tell_set_aside, untrusted
from scalesweep.tables.summary import build_summary
from tests.fakes.folder_tree import tree
from tests.fakes.records import make_record, times, write_run

IDS = [f"data_loading-r2-{i}" for i in range(3)]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three repeats of a run, with samples."""
    folder = tmp_path / "runs"
    for repeat, run_id in enumerate(IDS):
        write_run(folder, run_id, times(1.0 + 0.1 * repeat + times()["local_times"]), repeat=repeat)
    return folder


def test_what_is_written_is_read(runs: Path) -> None:
    record = read_record(runs / IDS[0] / RECORD)
    assert record["point"] == make_record()["point"]
    assert read_samples(runs / IDS[0], record) == (runs / IDS[0] / SAMPLES).read_bytes()
    assert np.load(runs / IDS[0] / SAMPLES)["local_times"].shape == (5, 2)
    assert sorted(path.name for path in (runs / IDS[0]).iterdir()) == [RECORD, SAMPLES]


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))


def _swap(one: Path, other: Path) -> None:
    between = one.with_name("between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def _edit(folder: Path) -> None:
    path = folder / RECORD
    path.write_text(path.read_text().replace('"wall_s": 200.5', '"wall_s": 100.5'))


def _edit_with_digest(folder: Path) -> None:
    """By somebody who knows the digest, but not the run's id."""
    edited = json.loads((folder / RECORD).read_bytes()) | {"run_id": IDS[1]}
    shutil.copy(write_record(folder.parent / "other" / IDS[1], edited), folder / RECORD)


# What happens to the first run -> the runs that cannot be trusted then, and what is said of them.
DAMAGE: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "record cut": (lambda f: os.truncate(f / RECORD, 300), {IDS[0]: "not whole JSON"}),
    "record flipped": (lambda f: _flip(f / RECORD), {IDS[0]: ""}),
    "a number edited": (_edit, {IDS[0]: "changed after it was written"}),
    "the id edited": (_edit_with_digest, {IDS[0]: f"is of run '{IDS[1]}'"}),
    "records swapped": (
        lambda f: _swap(f / RECORD, f.parent / IDS[1] / RECORD),
        {IDS[0]: f"is of run '{IDS[1]}'", IDS[1]: f"is of run '{IDS[0]}'"},
    ),
    "samples cut": (lambda f: os.truncate(f / SAMPLES, 400), {IDS[0]: "samples.npz has 400 bytes"}),
    "samples removed": (lambda f: (f / SAMPLES).unlink(), {IDS[0]: "samples.npz is missing"}),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("known", [True, False])
def test_damage_is_named_and_set_aside(runs: Path, name: str, known: bool) -> None:
    before = scan(runs, IDS)
    assert {state.status for state in before.values()} == {"done"}
    damage, expected = DAMAGE[name]
    damage(runs / IDS[0])
    if not known:
        (runs / INDEX).unlink()
    there = tree(runs / IDS[0])
    assert sorted(untrusted(scan(runs, IDS))) == sorted(expected)
    assert tree(runs / IDS[0]) == there  # a look alone writes nothing
    states = scan(runs, IDS, quarantine=True)
    broken = untrusted(states)
    assert sorted(broken) == sorted(expected)
    for run_id, why in expected.items():
        assert why in broken[run_id] and not states[run_id].settled
        assert not broken[run_id].startswith(run_id) and run_id in tell_set_aside(broken)
        left = {path.name for path in (runs / run_id).iterdir()}
        assert {f"{RECORD}.broken", "failure.json"} <= left and not {RECORD, SAMPLES} & left
    others = [run_id for run_id in IDS if run_id not in expected]
    assert {i: states[i] for i in others} == {i: before[i] for i in others}
    assert scan(runs, IDS, quarantine=True) == states
    done = [runs / i / RECORD for i, state in states.items() if state.status == "done"]
    assert build_summary(done)["run_id"].tolist() == others


def test_a_record_that_is_being_written_is_left_alone(runs: Path) -> None:
    (runs / IDS[0] / SAMPLES).write_bytes(b"x")  # between the samples and the record of another
    with only_one(runs / IDS[0]):
        assert list(untrusted(scan(runs, IDS, quarantine=True))) == [IDS[0]]
    assert (runs / IDS[0] / RECORD).exists()
    scan(runs, IDS, quarantine=True)
    assert not (runs / IDS[0] / RECORD).exists()


def test_a_damaged_index_costs_nothing_but_time(runs: Path) -> None:
    before = scan(runs, IDS)
    content = (runs / INDEX).read_bytes()
    other = json.dumps({**json.loads(content), "format": 0}).encode()
    for damaged in (b"", b"{", content[:-1], b'{"format": 13}', other):
        (runs / INDEX).write_bytes(damaged)
        assert scan(runs, IDS) == before
        assert json.loads((runs / INDEX).read_bytes())["runs"].keys() == set(IDS)


FAILED = {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:01:01.500+00:00"}


@pytest.mark.parametrize(
    ("failure", "cause", "given_s"),
    [
        (None, "", None),
        ("{", "UNKNOWN", None),
        ({"cause": "TIMEOUT", "asked": {"limit_s": 90}}, "TIMEOUT", 90.0),
        ({"cause": "TIMEOUT", "asked": None}, "TIMEOUT", 61.5),
        ({"cause": "TIMEOUT", "asked": {"limit_s": None}, "ended": None}, "TIMEOUT", None),
        ({"cause": "HANG", "asked": {"limit_s": 90}}, "HANG", None),
    ],
)
def test_states_of_runs_without_a_record(
    tmp_path: Path, failure: Any, cause: str, given_s: float | None
) -> None:
    (tmp_path / "a").mkdir()
    if failure is not None:
        text = failure if failure == "{" else json.dumps({"detail": "", **FAILED, **failure})
        (tmp_path / "a" / "failure.json").write_text(text)
    state = scan(tmp_path, ["a"])["a"]
    assert (state.status, state.cause) == ("failed" if cause else "new", cause)
    assert state.given_s == given_s and not state.settled


def test_an_unsupported_point_is_settled_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    write_record(tmp_path / "a", make_record("a", unsupported="all_reduce nccl: needs a GPU"))
    for _ in range(2):  # from the record, then from the index
        state = scan(tmp_path, ["a"])["a"]
        assert (state.status, state.cause) == ("unsupported", "UNSUPPORTED")
        assert state.detail == "all_reduce nccl: needs a GPU" and state.settled
    forget_unsupported(tmp_path, ["a"])
    assert scan(tmp_path, ["a"])["a"] == RunState("new")
    assert (tmp_path / "a" / "record.json.broken").is_file()
