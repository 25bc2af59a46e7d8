"""The history on disk: nothing is lost, nothing is there twice, damage is named."""

import json
import multiprocessing
import os
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.files import sealed
from scalesweep.history.store import SCHEMA, SESSIONS, append, kept_as_others, load
from tests.fakes.history import FakeSession, make_session

TWO = {"ranks 1": [1.0, 1.1], "ranks 2": [2.0, 2.1]}


def days(*numbers: int) -> list[FakeSession]:
    return [FakeSession(day, TWO) for day in numbers]


def add(folder: Path, *fakes: FakeSession) -> list[Path]:
    return append(folder, map(make_session, fakes))


def test_appending_twice_adds_nothing_and_any_reader_reads_the_folder(tmp_path: Path) -> None:
    written = add(tmp_path, *days(0, 1))
    assert len(written) == 2 and add(tmp_path, *days(0, 1)) == []
    rows = load(tmp_path).rows
    assert rows.num_rows == 8 and rows.column_names == SCHEMA.names
    frame = pd.read_parquet(tmp_path / SESSIONS)
    assert frame.groupby(["session", "label"])["value"].mean().tolist() == [1.05, 2.05] * 2
    assert pq.read_schema(written[0]).equals(SCHEMA)


def test_what_a_campaign_finishes_later_joins_its_session(tmp_path: Path) -> None:
    add(tmp_path, FakeSession(0, {"ranks 1": [1.0, 1.1]}))
    (more,) = add(tmp_path, FakeSession(0, TWO))
    assert pq.read_metadata(more).num_rows == 2
    sessions = load(tmp_path).rows["session"].to_pylist()
    assert len(sessions) == 4 and len(set(sessions)) == 1


def _write(folder: Path, first: int) -> None:
    for day in range(first, first + 10):
        add(folder, *days(day))


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(tmp_path, first)) for first in (0, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    rows = load(tmp_path).rows
    assert len(set(rows["session"].to_pylist())) == 15 and rows.num_rows == 60


def test_runs_that_two_files_have_count_once(tmp_path: Path) -> None:
    (path,) = add(tmp_path, *days(0))
    path.with_name(f"other-{path.name}").write_bytes(path.read_bytes())
    assert load(tmp_path).rows.num_rows == 4


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "metadata"])
def test_a_damaged_file_is_named_and_set_aside(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = add(tmp_path, *days(0, 1))
    content = bytearray(path.read_bytes())
    if how == "flipped":
        place = content.index(b"ranks 1") if b"ranks 1" in content else 600
        content[place] ^= 0xFF
    if how == "metadata":
        place = content.index(b"scalesweep_history") + 30
        content[place : place + 8] = b"\xff" * 8
    kept = {"cut": content[: len(content) // 2], "empty": bytearray()}.get(how, content)
    path.write_bytes(bytes(kept))
    found = load(tmp_path)
    assert found.rows.num_rows == 4
    assert [*found.broken] == [path.name] and path.name in caplog.text
    assert not path.exists() and path.with_name(path.name + ".broken").exists()
    assert load(tmp_path).broken == {}
    add(tmp_path, *days(0))  # what was lost comes again from its results folder
    assert load(tmp_path).rows.num_rows == 8


HOSTILE: dict[str, list[object]] = {
    "value": [float("nan"), float("inf"), 1e308, None],
    "started": [datetime(9999, 1, 1, tzinfo=UTC), None],
    "version": [-1, 2**62],
    "better": ["sideways", None],
    "label": [None],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, held in HOSTILE.items() for v in held])
def test_values_that_no_session_has_make_a_file_a_damaged_one(
    tmp_path: Path, name: str, value: object
) -> None:
    path, _ = add(tmp_path, *days(0, 1))
    table = pq.read_table(path)
    place = table.column_names.index(name)
    held = pa.array([value, *table[name].to_pylist()[1:]], SCHEMA.field(name).type)
    pq.write_table(table.set_column(place, SCHEMA.field(name), held), path)
    found = load(tmp_path)
    assert [*found.broken] == [path.name] and found.rows.num_rows == 4


@pytest.mark.parametrize("key", ["version", "session", "group", "runs"])
@pytest.mark.parametrize("value", [None, [1], [["a", "b"]], {}, True])
def test_a_file_that_says_what_no_file_says_is_a_damaged_one(
    tmp_path: Path, key: str, value: object
) -> None:
    for call in (lambda: load(tmp_path), lambda: add(tmp_path, *days(2))):
        path, *_ = add(tmp_path, *days(0))
        table = pq.read_table(path)
        meta = json.loads(table.schema.metadata[b"scalesweep_history"]) | {key: value}
        del meta["digest"]
        text = sealed(meta).encode()
        pq.write_table(table.replace_schema_metadata({b"scalesweep_history": text}), path)
        call()
        assert path.with_name(path.name + ".broken").exists() and not path.exists()


def lay(path: Path, kind: str) -> None:
    """Something that is no file of a history's."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.write_bytes(b"PAR1")
        os.truncate(path, 2 << 30)
    else:
        path.symlink_to({"loop": path.name, "endless": "/dev/zero"}[kind])


@pytest.mark.parametrize("kind", ["pipe", "folder", "loop", "endless", "sparse"])
def test_what_is_no_file_is_set_aside(tmp_path: Path, kind: str) -> None:
    path = tmp_path / SESSIONS / f"x-{kind}.parquet"
    for call in (lambda: load(tmp_path), lambda: add(tmp_path, *days(1))):
        add(tmp_path, *days(0))
        lay(path, kind)
        call()
        assert not os.path.lexists(path)
        aside = path.with_name(path.name + ".broken")
        aside.rmdir() if kind == "folder" else aside.unlink()
        assert load(tmp_path).rows.num_rows >= 4


def test_files_of_others_stay_and_newer_ones_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = add(tmp_path, *days(0))
    other = path.with_name("mine.parquet")
    pq.write_table(pa.table({"a": [1]}), other)
    assert load(tmp_path).rows.num_rows == 4 and other.exists()
    assert "mine.parquet: not a session" in caplog.text
    text = sealed({"version": 2, "sessions": []})
    meta = {b"scalesweep_history": text.encode()}
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(meta), other)
    for call in (lambda: load(tmp_path), lambda: add(tmp_path, *days(1))):
        with pytest.raises(UserError, match=r"mine\.parquet: written by a newer scalesweep"):
            call()
    assert other.exists()


def test_no_history_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no history"):
        load(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        add(tmp_path / "file", *days(0))


def test_a_run_that_is_kept_as_one_of_another_commit_is_named(tmp_path: Path) -> None:
    """Two profiles whose files are of the same second: the second would be lost without a word."""
    add(tmp_path, FakeSession(0, {"p": [1.0]}), FakeSession(1, {"p": [1.0]}, commit=""))
    again = [FakeSession(0, {"p": [1.0]}, commit="b" * 40), FakeSession(1, {"p": [1.0]})]
    assert append(tmp_path, map(make_session, again)) == []
    kept = kept_as_others(tmp_path, map(make_session, again))
    assert [(commit[:4], other[:4]) for _, commit, other in kept] == [
        ("bbbb", "0000"),
        ("0001", ""),
    ]
    assert kept_as_others(tmp_path, map(make_session, days(0, 2))) == []
