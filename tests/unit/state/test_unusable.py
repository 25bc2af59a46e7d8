"""Whole records of no use, and things that are no files: a state with a cause, in bounded time."""

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scalesweep.core.causes import Cause
from scalesweep.core.plan_format import read_plan, write_plan_file
from scalesweep.core.record import FAILURE, POWER, RECORD, SAMPLES
from scalesweep.planning.plan import note_failures, plan_csv
from scalesweep.state.run_state import note_unusable, scan
from scalesweep.state.stock import tell_unusable, untrusted, unusable
from tests.fakes.plan import whole_plan
from tests.fakes.records import times, write_run, write_unchecked
from tests.fakes.scripts import run_script

RUN, OTHER = "data_loading-r2-0", "data_loading-r2-1"


def test_an_unusable_record_is_a_settled_failure_and_stays(tmp_path: Path) -> None:
    path = write_unchecked(tmp_path, RUN, started="yesterday")
    write_run(tmp_path, OTHER, times())
    before = path.read_bytes()
    for _ in range(3):  # as read, and from the index
        states = scan(tmp_path, [RUN, OTHER], quarantine=True, verify=True)
        assert (states[RUN].status, states[RUN].cause) == ("failed", Cause.UNUSABLE_RECORD)
        assert states[RUN].detail.startswith("started is 'yesterday', not a date")
        assert states[RUN].settled and states[OTHER].status == "done" and not untrusted(states)
    assert path.read_bytes() == before
    assert tell_unusable(unusable(states)) == (
        f"1 record cannot be used and is left out: {RUN} ({states[RUN].detail}); delete its folder "
        "to measure it again"
    )


def test_what_samples_have_shown_is_remembered_until_they_change(tmp_path: Path) -> None:
    write_run(tmp_path, RUN, times())
    scan(tmp_path, [RUN])
    note_unusable(tmp_path, {RUN: "odd"})
    assert unusable(scan(tmp_path, [RUN])) == {RUN: "odd"}
    write_run(tmp_path, RUN, times(), wall_s=1.0)
    assert scan(tmp_path, [RUN])[RUN].status == "done"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("x")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path)


def gone(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


@pytest.mark.parametrize("make", [pipe, folder, device, loop, gone])
@pytest.mark.parametrize("name", [RECORD, SAMPLES, POWER, FAILURE])
def test_what_is_no_file_blocks_nothing(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    write_run(tmp_path, RUN, times())
    if name == FAILURE:
        (tmp_path / RUN / RECORD).unlink()
    path = tmp_path / RUN / name
    path.unlink(missing_ok=True)
    make(path)
    state = scan(tmp_path, [RUN], quarantine=True, verify=True)[RUN]
    if name == POWER:  # the record tells of none
        assert state.status == "done"
    elif make in (loop, gone) and name != SAMPLES:
        assert state.status == "new"
    elif name == FAILURE:
        assert (state.cause, state.detail) == ("UNKNOWN", "failure.json cannot be read")
    else:
        kind = {pipe: "a named pipe", folder: "a directory", device: "a device"}.get(make, "")
        why = "samples.npz is missing" if name == SAMPLES else f"is {kind}, not a file"
        assert state.cause == "BAD_RECORD" and why in state.detail and not state.settled
        assert not os.path.lexists(path) or name == SAMPLES
        # Once more, next to what was set aside before.
        write_run(tmp_path, RUN, times())
        (tmp_path / RUN / RECORD).write_text("{")
        assert scan(tmp_path, [RUN], quarantine=True)[RUN].cause == "BAD_RECORD"
        assert not (tmp_path / RUN / RECORD).exists()


def test_a_plan_is_told_what_reading_the_runs_has_shown(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    runs = [{"run_id": i, "status": "done"} for i in (RUN, OTHER)]
    write_plan_file(path, whole_plan({"experiments": [{"runs": runs}]}))
    (tmp_path / "plan.csv").write_text(plan_csv(read_plan(path)))
    stamps = [file.stat().st_mtime_ns for file in (path, tmp_path / "plan.csv")]
    note_failures(path, {RUN: (Cause.UNUSABLE_RECORD, "odd")})
    states = [(r["status"], r["cause"]) for r in read_plan(path)["experiments"][0]["runs"]]
    assert states == [("failed", Cause.UNUSABLE_RECORD), ("done", "")]
    with (tmp_path / "plan.csv").open() as file:
        assert [row["reason"] for row in csv.DictReader(file)] == ["odd", ""]
    assert stamps == [file.stat().st_mtime_ns for file in (path, tmp_path / "plan.csv")]


def test_a_summary_is_made_without_what_it_cannot_read(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    names = [f"data_loading-r2-{i}" for i in range(3)]
    for name, arrays in zip(names, (times(), {"loss": np.ones(3)}, times()), strict=True):
        write_run(folder, name, arrays)
    content = bytearray((folder / names[2] / SAMPLES).read_bytes())
    content[300] ^= 1
    (folder / names[2] / SAMPLES).write_bytes(content)
    plan = whole_plan({"experiments": [{"runs": [{"run_id": i, "status": "done"} for i in names]}]})
    write_plan_file(tmp_path / "plan.json", plan)
    out = tmp_path / "summary.parquet"
    words = ("--plan", tmp_path / "plan.json", "--runs", folder, "--out", out)
    done = run_script("summarise.py", *words)
    assert done.returncode == 0, done.stderr
    assert "1 finished runs summarised" in done.stdout
    assert f"is left out: {names[1]} (loss is float64 of shape (3,), not [epoch" in done.stdout
    assert f"was set aside: {names[2]} (samples.npz was changed" in done.stdout
    runs = read_plan(tmp_path / "plan.json")["experiments"][0]["runs"]
    assert [run["cause"] for run in runs] == ["", Cause.UNUSABLE_RECORD, "BAD_RECORD"]
    states = scan(folder, names)
    assert [state.cause for state in states.values()] == ["", Cause.UNUSABLE_RECORD, "BAD_RECORD"]
    assert json.loads((folder / names[2] / FAILURE).read_text())["cause"] == "BAD_RECORD"
