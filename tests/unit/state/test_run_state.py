"""Records are written whole or not at all, and what cannot be trusted is never counted."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.core.files import content_digest, sealed
from scalesweep.core.record import (
    BadRecordError,
    checksums,
    read_record,
    verify_files,
    write_record,
)
from scalesweep.state.run_index import INDEX, INDEX_FORMAT, RunIndex
from scalesweep.state.run_state import forget_unsupported, look, scan

RUN = "toy-r1-0123456789ab"


def record(**changes: Any) -> dict[str, Any]:
    return {
        "run_id": RUN, "benchmark": "toy", "version": 1, "point": {"ranks": 1}, "repeat": 0,
        "site": "toy", "source": "measured", "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:00:01+00:00", "wall_s": 1.0, "attempt": 1, "phases": {},
        "metrics": {}, "work": {}, "resources": {}, "environment": {}, "notes": {}, "git": None,
        "command": [], **changes,
    }  # fmt: skip


def write(runs: Path, **changes: Any) -> Path:
    samples = runs / "samples.tmp"
    runs.mkdir(exist_ok=True)
    with samples.open("wb") as file:
        np.savez(file, local_times=np.arange(6.0).reshape(3, 2))
    return write_record(runs / changes.get("run_id", RUN), record(**changes), samples)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "runs")
    found = read_record(path)
    assert found["point"] == {"ranks": 1}
    verify_files(path.parent, checksums(found))
    assert np.load(path.parent / "samples.npz")["local_times"].shape == (3, 2)
    assert sorted(p.name for p in path.parent.iterdir()) == ["record.json", "samples.npz"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"wall_s": float("nan")}, "NaN"),
        ({"source": "guessed"}, "allowed: measured, simulated, imported"),
        ({"point": None}, "'point' has the wrong type"),
        ({"repeat": True}, "'repeat' has the wrong type"),
    ],
)
def test_a_wrong_record_is_not_written(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRecordError, match=told):
        write(tmp_path / "runs", **change)
    assert not list(tmp_path.glob("runs/*/record.json"))


def _edit(path: Path) -> None:
    path.write_text(path.read_text().replace('"wall_s": 1.0', '"wall_s": 0.5'))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _other(path: Path) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "run_id": "toy-r1-ffffffffffff"}))


def _no_samples(path: Path) -> None:
    (path.parent / "samples.npz").unlink()


def _short_samples(path: Path) -> None:
    samples = path.parent / "samples.npz"
    samples.write_bytes(samples.read_bytes()[:-1])


def _not_json(path: Path) -> None:
    path.write_bytes(b"\xff\x00" * 50)


def _nested(path: Path) -> None:
    path.write_text("[" * 100_000)


DAMAGE = [_edit, _cut, _other, _no_samples, _short_samples, _not_json, _nested]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_named_and_set_aside(tmp_path: Path, damage: Any) -> None:
    runs = tmp_path / "runs"
    path = write(runs)
    assert scan(runs, [RUN])[RUN].status == "done"
    damage(path)
    os.utime(path, ns=(1, 1))  # a touched file is read again
    with pytest.raises(BadRecordError, match=RUN):
        read_record(path)
    state = scan(runs, [RUN])[RUN]
    assert (state.status, state.cause) == ("failed", "BAD_RECORD")
    assert path.exists()
    state = scan(runs, [RUN], quarantine=True)[RUN]
    assert (state.status, state.cause) == ("failed", "BAD_RECORD")
    assert not path.exists() and (path.parent / "record.json.broken").exists()


def test_unchanged_records_are_not_read_again(tmp_path: Path, monkeypatch: Any) -> None:
    runs = tmp_path / "runs"
    write(runs)
    before = scan(runs, [RUN])
    monkeypatch.setattr(
        "scalesweep.state.run_state.read_record", lambda path: pytest.fail("read again")
    )
    assert scan(runs, [RUN]) == before
    assert before[RUN].wall_s == 1.0


def test_a_look_writes_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    good, broken = write(runs), write(runs, run_id="toy-r1-ffffffffffff")
    _cut(broken)

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in runs.rglob("*")}

    before = files()
    ids = [RUN, broken.parent.name, "none"]
    for words in ({}, {"verify": True}, {"verify": True, "afresh": True}):
        found = look(runs, ids, RunIndex(runs), **words)
        assert [state.status for state in found.states.values()] == ["done", "failed", "new"]
        assert list(found.read) == [RUN] and found.broken == [broken.parent.name]
        assert not found.unreadable and bool(found.read[RUN].unread) is not bool(words)
        assert files() == before
    assert good.exists() and not (runs / INDEX).exists()


def test_an_index_that_cannot_be_kept_is_done_without(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs, wall_s=10**30)
    for _ in range(2):
        assert scan(runs, [RUN])[RUN].wall_s == 10**30
    assert not (runs / INDEX).exists()


def test_states_of_unfinished_runs(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "b").mkdir(parents=True)
    (runs / "b" / "failure.json").write_text(json.dumps({"cause": "TIMEOUT", "detail": "60 s"}))
    (runs / "c").mkdir()
    (runs / "c" / "failure.json").write_text("{")
    states = scan(runs, ["a", "b", "c"])
    assert [states[r].status for r in "abc"] == ["new", "failed", "failed"]
    assert [states[r].cause for r in "abc"] == ["", "TIMEOUT", "UNKNOWN"]


@pytest.mark.parametrize(
    ("failure", "given_s"),
    [
        ({"cause": "TIMEOUT", "asked": {"limit_s": 90}}, 90.0),
        ({"cause": "TIMEOUT", "asked": None}, 61.5),
        ({"cause": "TIMEOUT", "asked": {"limit_s": None}, "ended": "soon"}, None),
        ({"cause": "TIMEOUT", "asked": {"limit_s": 10**400}}, None),
        ({"cause": "HANG", "asked": {"limit_s": 90}}, None),
    ],
)
def test_what_a_run_had_that_reached_its_limit(
    tmp_path: Path, failure: dict[str, Any], given_s: float | None
) -> None:
    times = {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:01:01.500+00:00"}
    (tmp_path / RUN).mkdir()
    content = {"detail": "", **times, **failure}
    (tmp_path / RUN / "failure.json").write_text(json.dumps(content))
    assert scan(tmp_path, [RUN])[RUN].given_s == given_s


def test_a_damaged_index_costs_nothing_but_time(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs)
    stamp = scan(runs, [RUN])[RUN].stamp
    content = (runs / ".index.json").read_bytes()
    body = json.loads(content)
    del body["digest"]
    assert body["format"] == INDEX_FORMAT
    assert (body["runs"], body["stamp"], body["wall_s"], body["kind"]) == (
        [RUN],
        [stamp],
        [1.0],
        [0],
    )
    assert [(kind["source"], kind["stamp"]) for kind in body["kinds"]] == [("measured", "")]
    assert list(body["unread"]) == [RUN]
    other = {**body, "wall_s": [9.0]}
    unsealed = json.dumps(body).encode()
    damaged = [b"", b"{", b"[" * 100_000, unsealed, content[:-1], content.replace(b"1.0", b"9.0")]
    wrong: list[Any] = [
        None,
        [],
        "x",
        {},
        [None],
        [[]],
        [RUN, RUN],
        {RUN: stamp},
        [7],
    ]
    parts = {**dict.fromkeys(("runs", "stamp", "kinds"), wrong), "kind": [[1], [-1], None]}
    damaged += [
        sealed({**other, name: value}).encode()
        for name, values in parts.items()
        for value in values
    ]
    damaged += [sealed({k: v for k, v in other.items() if k != n}).encode() for n in other]
    damaged += [sealed({**other, "format": INDEX_FORMAT - 1}).encode()]
    entry = [stamp, 9.0, "measured", None, None, "", {}, "", "", {}, None]
    damaged += [sealed({"format": 9, "runs": {RUN: entry}}).encode()]
    # Of the format before, whose first line sealed the second.
    old = json.dumps({RUN: entry}).encode()
    first = {"format": 5, "blake2b": content_digest(old)}
    damaged += [json.dumps(first).encode() + b"\n" + old]
    for index in damaged:
        (runs / ".index.json").write_bytes(index)
        state = scan(runs, [RUN])[RUN]
        assert (state.status, state.wall_s, state.source) == ("done", 1.0, "measured")
        assert (runs / ".index.json").read_bytes() == content


@pytest.mark.parametrize(
    ("phases", "fixed_s"),
    [
        ({}, None),
        ({"import": 1.0}, None),
        ({"timed": 3.0}, 0.0),
        ({"import": 1.5, "init": 0.25, "warmup": 4.0, "timed": 3.0, "teardown": 0.5}, 2.25),
        ({"timed": 3.0, "import": None}, None),
    ],
)
def test_the_part_of_a_run_that_does_not_grow_with_its_work(
    tmp_path: Path, phases: dict[str, Any], fixed_s: float | None
) -> None:
    runs = tmp_path / "runs"
    write(runs, phases=phases)
    for _ in range(2):  # from the record, then from the index
        assert scan(runs, [RUN])[RUN].fixed_s == fixed_s


def test_an_unsupported_point_is_settled_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs, unsupported="all_reduce nccl: needs a GPU")
    for _ in range(2):  # from the record, then from the index
        state = scan(runs, [RUN])[RUN]
        assert (state.status, state.cause) == ("unsupported", "UNSUPPORTED")
        assert state.detail == "all_reduce nccl: needs a GPU" and state.settled
    forget_unsupported(runs, [RUN])
    state = scan(runs, [RUN])[RUN]
    assert state.status == "new" and not state.settled
    assert (runs / RUN / "record.json.unsupported").is_file()
