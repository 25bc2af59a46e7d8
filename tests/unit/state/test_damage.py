"""Whatever happens to the files of a run afterwards: it is found, named, set aside, never counted.

Found, or without effect: a flipped bit may fall into a space between two values.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scalesweep.compute.job_spec import read_order, write_order
from scalesweep.core import record
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, is_whole, sealed
from scalesweep.core.locks import only_one
from scalesweep.core.plan_format import read_plan
from scalesweep.core.record import (
    POWER,
    RECORD,
    SAMPLES,
    BadRecordError,
    NewerRecordError,
    checksums,
    described,
    read_record,
    verify_files,
    write_record,
)
from scalesweep.report.export_tables import summaries_elsewhere
from scalesweep.state.artifacts import forget_made, note_made, was_changed
from scalesweep.state.run_index import INDEX
from scalesweep.state.run_state import RunState, scan
from scalesweep.state.set_aside import BROKEN
from scalesweep.state.stock import tell_set_aside, untrusted
from scalesweep.tables.summary import build_summary
from tests.fakes.plan import whole_plan
from tests.fakes.records import make_record, times, write_run
from tests.soak.launching import order

IDS = [f"data_loading-r2-{i}" for i in range(3)]
POWER_CSV = "time,host,domain,watts\n2026-01-01T00:00:00.000+00:00,n,rapl:package-0,\n"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three repeats of a run, with samples and power.csv."""
    folder = tmp_path / "runs"
    for repeat, run_id in enumerate(IDS):
        (folder / run_id).mkdir(parents=True)
        power = folder / run_id / POWER
        power.write_text(POWER_CSV + f"2026-01-01T00:00:01.000+00:00,n,rapl:package-0,{repeat}\n")
        measured = times(1.0 + 0.1 * repeat + times()["local_times"])
        energy = {"table": described(power), "domains": {}, "phases": {}}
        write_run(folder, run_id, measured, repeat=repeat, energy=energy)
    (folder / SAMPLES).unlink(missing_ok=True)
    return folder


def flips(content: bytes, bits: int = 8) -> Iterator[bytes]:
    """The content with one bit flipped, for ``bits`` of every byte that it has."""
    changed = bytearray(content)
    for place in range(len(content)):
        for bit in range(place, place + bits):
            changed[place] ^= 1 << bit % 8
            yield bytes(changed)
            changed[place] ^= 1 << bit % 8


def test_every_flipped_bit_of_a_record_is_found_or_changes_nothing(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = runs / IDS[0] / RECORD
    good, content = read_record(path), path.read_bytes()
    found = 0
    for changed in flips(content):
        monkeypatch.setattr(record, "record_bytes", lambda path, changed=changed: changed)
        try:
            assert read_record(path) == good
        except (
            BadRecordError,
            NewerRecordError,
        ) as error:  # a digit of the schema may be that of a later one
            assert str(error).startswith(IDS[0]) and "\n" not in str(error)
            found += 1
    assert found > 7 * len(content)  # what is left are spaces between values


@pytest.mark.parametrize("name", [SAMPLES, POWER])
def test_every_flipped_byte_of_what_lies_beside_a_record_is_found(runs: Path, name: str) -> None:
    path = runs / IDS[0] / name
    expected = checksums(read_record(path.parent / RECORD))
    verify_files(path.parent, expected)
    for changed in flips(path.read_bytes(), bits=1):
        path.write_bytes(changed)
        with pytest.raises(BadRecordError, match=f"{name} was changed"):
            verify_files(path.parent, expected)


@pytest.mark.parametrize("name", [RECORD, SAMPLES])
def test_every_cut_is_found(runs: Path, name: str) -> None:
    path = runs / IDS[0] / name
    content = path.read_bytes()
    for length in range(0, len(content.rstrip()), 3):
        path.write_bytes(content[:length])
        with pytest.raises(BadRecordError, match=IDS[0]):
            read_record(path.parent / RECORD)


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
    text = path.read_text()
    assert '"wall_s": 200.5' in text
    path.write_text(text.replace('"wall_s": 200.5', '"wall_s": 100.5'))


def _edit_with_digest(folder: Path) -> None:
    """By somebody who knows the digest, but not the run's id."""
    edited = json.loads((folder / RECORD).read_bytes()) | {"run_id": IDS[1]}
    shutil.copy(write_record(folder.parent / "other" / IDS[1], edited), folder / RECORD)


# What happens to the first run -> the runs that cannot be trusted then, and what is said of them.
Damage = tuple[Callable[[Path], object], dict[str, str]]
DAMAGE: dict[str, Damage] = {
    "record cut": (lambda f: os.truncate(f / RECORD, 300), {IDS[0]: "not whole JSON"}),
    "record emptied": (lambda f: (f / RECORD).write_bytes(b""), {IDS[0]: "not whole JSON"}),
    "record flipped": (lambda f: _flip(f / RECORD), {IDS[0]: ""}),
    "a number edited": (_edit, {IDS[0]: "changed after it was written"}),
    "the id edited": (_edit_with_digest, {IDS[0]: f"is of run {IDS[1]}"}),
    "records swapped": (
        lambda f: _swap(f / RECORD, f.parent / IDS[1] / RECORD),
        {IDS[0]: f"is of run {IDS[1]}", IDS[1]: f"is of run {IDS[0]}"},
    ),
    "samples cut": (lambda f: os.truncate(f / SAMPLES, 400), {IDS[0]: "samples.npz has 400 bytes"}),
    "samples emptied": (lambda f: os.truncate(f / SAMPLES, 0), {IDS[0]: "samples.npz has 0 bytes"}),
    "samples removed": (lambda f: (f / SAMPLES).unlink(), {IDS[0]: "samples.npz is missing"}),
    "samples flipped": (lambda f: _flip(f / SAMPLES), {IDS[0]: "samples.npz was changed"}),
    "samples swapped": (
        lambda f: _swap(f / SAMPLES, f.parent / IDS[1] / SAMPLES),
        {IDS[0]: "samples.npz was changed", IDS[1]: "samples.npz was changed"},
    ),
    "folders swapped": (
        lambda f: _swap(f, f.parent / IDS[1]),
        {IDS[0]: f"is of run {IDS[1]}", IDS[1]: f"is of run {IDS[0]}"},
    ),
    "power edited": (lambda f: _flip(f / POWER), {IDS[0]: "power.csv was changed"}),
    "power cut": (lambda f: os.truncate(f / POWER, 20), {IDS[0]: "power.csv was changed"}),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("known", [True, False], ids=["known", "new"])
def test_damage_is_named_and_set_aside(runs: Path, name: str, known: bool) -> None:
    """``known``: the runs were counted before; else what new runs have left is read whole."""
    before = scan(runs, IDS, verify=True)
    assert {state.status for state in before.values()} == {"done"}
    damage, expected = DAMAGE[name]
    damage(runs / IDS[0])
    if not known:
        (runs / INDEX).unlink()
    states = scan(runs, IDS, quarantine=True, verify=not known)
    broken = untrusted(states)
    assert sorted(broken) == sorted(expected)
    for run_id, why in expected.items():
        assert why in broken[run_id] and not states[run_id].settled
        assert not broken[run_id].startswith(run_id)
        left = {path.name for path in (runs / run_id).iterdir()}
        assert {f"{RECORD}{BROKEN}", "failure.json"} <= left and not {RECORD, SAMPLES, POWER} & left
        assert run_id in tell_set_aside(broken)
    others = [run_id for run_id in IDS if run_id not in expected]
    assert {i: states[i] for i in others} == {i: before[i] for i in others}
    assert scan(runs, IDS, quarantine=True) == states
    done = [runs / i / RECORD for i, state in states.items() if state.status == "done"]
    assert build_summary(done)["run_id"].tolist() == others


def test_a_removed_record_is_a_run_that_is_new(runs: Path) -> None:
    scan(runs, IDS)
    (runs / IDS[0] / RECORD).unlink()
    assert scan(runs, IDS, quarantine=True)[IDS[0]] == RunState("new")


def test_power_that_was_thrown_away_is_no_damage(runs: Path) -> None:
    scan(runs, IDS, verify=True)
    (runs / IDS[0] / POWER).unlink()
    assert not untrusted(scan(runs, IDS, quarantine=True))


def test_samples_are_read_once_and_not_while_parsing(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = verify_files
    monkeypatch.setattr(
        "scalesweep.state.run_state.verify_files",
        lambda folder, expected: read.append(folder.name) or original(folder, expected),
    )
    for words, expected in (
        ({}, []), ({"verify": True}, IDS), ({"verify": True}, []), ({}, []),
        ({"verify": True, "afresh": True}, IDS),
    ):  # fmt: skip
        read.clear()
        scan(runs, IDS, **words)
        assert read == expected, words
    # A copy without its times is not known any more: read again when stock is taken.
    os.utime(runs / IDS[1] / RECORD, ns=(1, 1))
    scan(runs, IDS)
    scan(runs, IDS, verify=True)
    assert read.pop() == IDS[1]
    # Same size, same time: nothing but a look at all of it can tell.
    samples = runs / IDS[2] / SAMPLES
    stamp = samples.stat().st_mtime_ns
    _flip(samples)
    os.utime(samples, ns=(stamp, stamp))
    assert not untrusted(scan(runs, IDS, verify=True))
    assert list(untrusted(scan(runs, IDS, verify=True, afresh=True))) == [IDS[2]]


def test_a_record_that_is_being_written_is_left_alone(runs: Path) -> None:
    scan(runs, IDS)
    _flip(runs / IDS[0] / SAMPLES)  # as between the samples and the record of a second attempt
    with only_one(runs / IDS[0]):
        assert list(untrusted(scan(runs, IDS, quarantine=True))) == [IDS[0]]
    assert (runs / IDS[0] / RECORD).exists()
    scan(runs, IDS, quarantine=True)
    assert not (runs / IDS[0] / RECORD).exists()


def test_a_file_that_cannot_be_read_is_no_damage(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("scalesweep.state.run_state.read_record", refused)
    with pytest.raises(UserError, match=rf"Permission denied: .*{RECORD}"):
        scan(runs, IDS, quarantine=True)
    assert all((runs / run_id / RECORD).exists() for run_id in IDS)


def test_a_damaged_run_of_another_site_is_left_out(
    runs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    here = runs.parent / "here"
    here.mkdir()
    _flip(runs / IDS[1] / SAMPLES)
    found = summaries_elsewhere(here, IDS)
    assert found["runs"]["run_id"].tolist() == [IDS[0], IDS[2]]
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert f"runs/{IDS[1]}: samples.npz was changed" in line.getMessage()
    assert (runs / IDS[1] / RECORD).exists()


def test_many_are_told_in_one_line() -> None:
    told = tell_set_aside({f"run{i}": "cut" for i in range(500)})
    assert told.startswith("500 records cannot be trusted and were set aside: run0 (cut), run1")
    assert told.endswith("run9 (cut) and 490 more, see plan.csv")


@pytest.mark.parametrize(
    "said", [{"samples": {}}, {"samples": {"blake2b": 1}}, {"samples": [1]}, {"energy": 3},
             {"energy": {"table": {"bytes": 1}}}],
)  # fmt: skip
def test_a_record_that_tells_its_files_wrong(tmp_path: Path, said: dict[str, object]) -> None:
    folder = tmp_path / IDS[0]
    complete = {**make_record(), "schema": 1, "samples": None, **said}
    folder.mkdir()
    (folder / RECORD).write_text(json.dumps(complete | {"digest": digest_of(complete)}))
    with pytest.raises(BadRecordError, match=IDS[0]):
        read_record(folder / RECORD)


def test_every_flipped_bit_of_an_order_and_of_a_plan_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "order.json"
    write_order(path, order(tmp_path / "a", "", argv=["x y", "é"]))
    content, good = path.read_bytes(), read_order(path)
    for changed in flips(content):
        monkeypatch.setattr(Path, "read_bytes", lambda path, changed=changed: changed)
        try:
            assert read_order(path) == good
        except UserError as error:
            assert f"{path}: cannot read the job specification" in str(error)
    run = {"run_id": "a", "status": "done", "point": {"é": 1.5}}
    plan = whole_plan({"experiments": [{"name": "e", "runs": [run]}]})
    content = sealed(plan).encode()
    assert json.loads(content) | {"digest": ""} == plan | {"digest": ""} and is_whole(content)
    for changed in flips(content):
        monkeypatch.setattr(Path, "read_bytes", lambda path, changed=changed: changed)
        try:
            assert read_plan(path)["experiments"] == plan["experiments"]
        except UserError as error:
            assert str(error).startswith(str(path))


def test_what_was_made_is_made_again_when_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables" / "e").mkdir(parents=True)
    table = tmp_path / "tables" / "e" / "points.csv"
    for path in (table, tmp_path / "plan.json"):
        path.write_text("1")
    assert not was_changed(tmp_path)  # nothing is known of it
    note_made(tmp_path)
    assert not was_changed(tmp_path)
    (tmp_path / "tables" / ".snakemake_timestamp").touch()
    (tmp_path / "tables" / "mine.txt").touch()
    assert not was_changed(tmp_path)
    for damage in (lambda: table.write_text("12"), table.unlink,
                   lambda: (tmp_path / "plan.json").write_text("")):  # fmt: skip
        damage()
        assert was_changed(tmp_path)
        table.write_text("1")
        note_made(tmp_path)
    (tmp_path / "report.html").mkdir()
    assert was_changed(tmp_path)
    (tmp_path / "report.html").rmdir()
    (tmp_path / ".outputs" / "tables").mkdir(parents=True)
    assert not was_changed(tmp_path)
    (tmp_path / "tables").rename(tmp_path / "t")
    (tmp_path / "tables").write_text("mine")
    assert was_changed(tmp_path)
    (tmp_path / "tables").unlink()
    (tmp_path / "t").rename(tmp_path / "tables")
    shutil.rmtree(tmp_path / ".outputs")
    shutil.rmtree(tmp_path / "tables")  # Snakemake sees that
    assert not was_changed(tmp_path)
    note_made(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("scalesweep.state.artifacts.code_digest", lambda: 32 * "0")
        assert was_changed(tmp_path)  # by an upgrade, too
    assert not was_changed(tmp_path)
    for content in ("", "[]", "{", "[" * 100_000, '{"plan.json": 1}', "{}"):
        (tmp_path / ".made.json").write_text(content)
        assert was_changed(tmp_path)
    forget_made(tmp_path)
    assert not was_changed(tmp_path)
