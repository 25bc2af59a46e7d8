"""Summaries read only what is new, and tell the same as the usual way of reading."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.lib.pandas_way import read_histories, write_history
from scalesweep.core.errors import UserError
from scalesweep.core.parallel import shared_map
from scalesweep.core.record import RECORD, SAMPLES
from scalesweep.tables.summary import MANY, build_summary, write_summary
from scalesweep.tables.summary_cache import keep_summary
from tests.conftest import ROOT
from tests.fakes.records import times, write_run

SAMPLES_PER_RANK = 320


def measured(ranks: int, seed: int) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    local = draw.lognormal(1, 0.3, (5, ranks))
    return local, local.max(axis=1, keepdims=True) + draw.random((5, ranks))


def write_runs(root: Path, ranks: list[int]) -> list[Path]:
    return [
        write_run(
            root, f"run{place}", times(*measured(count, place)), point={"ranks": count},
            work={"samples_per_epoch": SAMPLES_PER_RANK * count},
        )
        for place, count in enumerate(ranks)
    ]  # fmt: skip


def test_both_ways_of_reading_give_equal_numbers(tmp_path: Path) -> None:
    ranks = [1, 3, 1024]
    ours = build_summary(write_runs(tmp_path / "runs", ranks))
    runs = []
    for place, count in enumerate(ranks):
        folder = tmp_path / "texts" / str(place)
        write_history(folder, *measured(count, place))
        runs.append((folder, count, SAMPLES_PER_RANK * count))
    theirs = read_histories(runs)
    assert len(theirs.columns) == 12
    for column in theirs:
        np.testing.assert_allclose(ours[column], theirs[column], rtol=1e-9, err_msg=column)


@pytest.mark.parametrize("file", [RECORD, SAMPLES])
def test_files_of_unchanged_runs_are_not_opened(tmp_path: Path, file: str) -> None:
    paths = write_runs(tmp_path / "runs", [2, 4])
    first = build_summary(paths)
    write_summary(first, tmp_path / "summary.parquet")
    keep_summary(tmp_path / "summary.parquet", tmp_path / "kept")
    for path in paths:
        # Whoever opened this would find nonsense.
        changed = path.with_name(file)
        before = changed.stat()
        changed.write_bytes(b"?" * before.st_size)
        os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    paths.append(write_run(tmp_path / "runs", "new", times(), point={"ranks": 2}))
    again = build_summary(paths, tmp_path / "kept")
    pd.testing.assert_frame_equal(again.iloc[:2], first)
    assert again["run_id"].tolist() == ["run0", "run1", "new"]


def test_several_processes_read_the_same(tmp_path: Path) -> None:
    paths = write_runs(tmp_path / "runs", [1 + place % 3 for place in range(MANY)])
    paths[7].write_text("{")
    gone = paths[9].with_name(SAMPLES)
    gone.unlink()
    one: dict[str, str] = {}
    several: dict[str, str] = {}
    frame = build_summary(paths, broken=one)
    pd.testing.assert_frame_equal(build_summary(paths, broken=several, processes=2), frame)
    assert one == several and list(one) == ["run7", "run9"]


def _double_or_die(work: int, item: int) -> int:
    if item == work:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def test_a_killed_process_is_told_in_one_line() -> None:
    assert shared_map(_double_or_die, 9, [3, 1, 2], 2) == [6, 2, 4]
    with pytest.raises(UserError, match="was killed"):
        shared_map(_double_or_die, 1, [3, 1, 2], 2)


@pytest.mark.parametrize("processes", [1, 2])
def test_this_process_does_other_things_meanwhile_once(processes: int) -> None:
    done: list[int] = []
    found = shared_map(_double_or_die, 9, [3, 1, 2], processes, lambda: done.append(1))
    assert (found, done) == ([6, 2, 4], [1])


def test_processes_that_read_records_start_before_pandas_is_imported() -> None:
    code = "import sys, scalesweep.commands.summarise; print({'pandas', 'scipy'} & {*sys.modules})"
    words = [sys.executable, "-c", code]
    assert subprocess.run(words, check=True, capture_output=True, cwd=ROOT).stdout == b"set()\n"


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_run_whose_quantities_are_no_numbers_is_named_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write_run(tmp_path, f"run{n}", times()) for n in range(3)]
    monkeypatch.setattr("scalesweep.tables.summary._SHORTEST_S", 0.0)  # which would refuse them
    tiny = {name: array * 1e-320 for name, array in times().items()}
    paths.insert(1, write_run(tmp_path, "tiny", tiny))
    with pytest.raises(UserError, match=r"^tiny: samples.npz cannot be read \(values must be fini"):
        build_summary(paths)
    assert build_summary(paths[:1])["run_id"].tolist() == ["run0"]
