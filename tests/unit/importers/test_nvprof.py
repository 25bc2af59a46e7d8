"""Files of nvprof, and windows of the recordings of nvprof and Nsight Systems."""

import argparse
import os
import sqlite3
from pathlib import Path

import pytest

from scalesweep.analysis.profile import parts_of
from scalesweep.commands.import_profiles import run, window_of
from scalesweep.core.errors import UserError
from scalesweep.importers.profiles.demangling import demangled
from scalesweep.importers.profiles.detect import read_source
from scalesweep.importers.profiles.nsys_database import Window
from scalesweep.importers.profiles.profile_runs import runs_of
from tests.fakes import profiles as fake

EIGEN = "void Eigen::internal::EigenMetaKernel<float>(float)"
KERNELS = "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"


def test_a_file_of_nvprof_is_read_as_one_of_nsight_systems(tmp_path: Path) -> None:
    path = fake.nvprof_sqlite(tmp_path / "run.nvvp")
    source = read_source(path)
    (profile,) = source.profiles
    assert not source.refusals and profile.tool == "nvprof"
    seconds = {(each.kind, each.name): each.exclusive_s for each in profile.functions}
    assert seconds == pytest.approx(
        {
            ("kernel", EIGEN): 2.0, ("kernel", "volta_sgemm_128x64_nn"): 2.0,
            ("copy", "[CUDA memcpy HtoD]"): 1.0, ("copy", "[CUDA memcpy DtoH]"): 0.5,
            ("copy", "[CUDA memcpy PtoP]"): 0.25, ("copy", "[CUDA memset]"): 0.25,
        }
    )  # fmt: skip
    assert profile.elapsed_s == pytest.approx(10.0)  # of the calls, too
    assert profile.metrics["gpu_busy"]["value"] == pytest.approx((3 + 1.5 + 0.25 + 0.25) / 10)
    assert profile.notes["without_times"] == "1 events, left out"
    assert parts_of(profile)["copies"] == pytest.approx([2.0])
    (made,) = runs_of([profile], path).runs
    assert made.benchmark == "profile_nvprof"


def test_a_window_has_the_part_of_each_event_in_it(tmp_path: Path) -> None:
    path = fake.nvprof_sqlite(tmp_path / "run.nvvp")
    (profile,) = read_source(path, window=Window(2.5, 5.5)).profiles
    seconds = {each.name: each.exclusive_s for each in profile.functions}
    assert seconds == pytest.approx(
        {EIGEN: 0.5, "volta_sgemm_128x64_nn": 1.5, "[CUDA memcpy HtoD]": 0.5}
    )
    assert profile.elapsed_s == pytest.approx(3.0)
    assert profile.metrics["gpu_busy"]["value"] == pytest.approx(2 / 3)
    (whole,) = read_source(path).profiles
    runs = runs_of([profile, whole], path).runs
    assert [each.point["region"] for each in runs] == ["2.5 to 5.5 s", None]
    assert len({each.source_digest for each in runs}) == 2
    (end,) = read_source(path, window=Window(8, 100)).profiles
    assert end.elapsed_s == pytest.approx(2.0)
    assert [each.name for each in end.functions] == ["[CUDA memset]"]
    for window, words in (
        (Window(11, 12), "none of it in 11 to 12 s"),
        (Window(4, 5), "has a row"),
    ):
        (refusal,) = read_source(path, window=window).refusals
        assert words in refusal.message
    (nsys,) = read_source(
        fake.nsys_sqlite(tmp_path / "nsys.sqlite"), window=Window(3.5, 8.5)
    ).profiles
    assert nsys.metrics["kernel_time"]["value"] == pytest.approx(2.0)
    assert nsys.metrics["gpu_busy"]["value"] == pytest.approx(2.0 / 5)


def test_several_gpus_of_a_process_are_busy_one_by_one(tmp_path: Path) -> None:
    """One from 1 to 3 s, copies and fills of 2 s; the other from 2 to 4 s."""
    other = f"UPDATE {KERNELS} SET deviceId = 1 WHERE streamId = 13"
    (profile,) = read_source(fake.nvprof_sqlite(tmp_path / "two.nvvp", other)).profiles
    assert profile.metrics["gpu_busy"]["value"] == pytest.approx(0.5)
    assert profile.metrics["gpu_busy_each"]["value"] == pytest.approx((4 + 2) / 2 / 10)
    (single,) = read_source(fake.nvprof_sqlite(tmp_path / "one.nvvp")).profiles
    assert "gpu_busy_each" not in single.metrics


def test_only_databases_have_windows(tmp_path: Path) -> None:
    (tmp_path / "kernels.csv").write_text(fake.nsys_csv())
    (tmp_path / "talp.json").write_text(fake.talp())
    source = read_source(tmp_path, window=Window(0, 1))
    assert not source.profiles
    assert all("--window needs a database" in each.message for each in source.refusals)
    assert len(source.refusals) == 2
    assert window_of("") is None and window_of("1:2.5") == Window(1, 2.5)
    for text in ("1", "2:1", "1:1", "-1:2", "a:b", "1:2:3", "0:inf", "nan:1"):
        with pytest.raises(UserError, match=r"--window: .* FROM:TO"):
            window_of(text)
    with pytest.raises(UserError, match="not with --benchmark"):
        run(argparse.Namespace(window="1:2", benchmark="nt3", source=str(tmp_path), ranks=None))


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"UPDATE {KERNELS} SET end = start - 1", "ends before it begins"),
        (f"UPDATE {KERNELS} SET start = 'now'", "ends before it begins"),
        (f"UPDATE {KERNELS} SET end = 9223372036854775807, start = -9223372036854775807",
         "not a whole database"),
        (f"DROP TABLE {KERNELS}", ""),
        ("DROP TABLE StringTable", ""),  # one of Nsight Systems, then
        ("ALTER TABLE StringTable RENAME COLUMN value TO text", "no such column"),
        (f"ALTER TABLE {KERNELS} RENAME COLUMN start TO begin", "has no start and end"),
        (f"UPDATE {KERNELS} SET name = 99", ""),
        (f"UPDATE {KERNELS} SET deviceId = 'x'", "not a whole database"),
        (f"UPDATE {KERNELS} SET deviceId = 1 << 40", "not a whole database"),
        (f"UPDATE {KERNELS} SET name = 'x'", ""),
    ],
)  # fmt: skip
def test_hostile_files_of_nvprof_are_refused_or_read(
    tmp_path: Path, statement: str, words: str
) -> None:
    source = read_source(fake.nvprof_sqlite(tmp_path / "odd.nvvp", statement))
    if words:
        (refusal,) = source.refusals
        assert words in refusal.message and "\n" not in refusal.message
    else:
        assert len(source.profiles) == 1


def test_cut_and_empty_files_and_views_are_refused(tmp_path: Path) -> None:
    path = fake.nvprof_sqlite(tmp_path / "cut.nvvp")
    path.write_bytes(path.read_bytes()[:-3000])
    (refusal,) = read_source(path).refusals
    assert "not a whole database" in refusal.message
    whole = fake.nvprof_sqlite(tmp_path / "cut.nvvp").stat().st_size
    os.truncate(path, whole - 4096)
    assert read_source(path).refusals
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringTable (_id_ INTEGER, value TEXT)")
        database.execute(
            f"CREATE VIEW {KERNELS} AS WITH RECURSIVE n(i) AS "
            "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start, i AS end, 1 AS name FROM n"
        )
    (refusal,) = read_source(path).refusals
    assert "has a row" in refusal.message


def test_names_that_are_none_stay(tmp_path: Path) -> None:
    deep = "_Z" + "P" * 8000 + "i"
    names = ["_Z3fooi", "_Zno", "gemm", deep, "_Z" + "N" * 100_000, "_Z1a\0_Z1b"]
    assert demangled(names) == {"_Z3fooi": "foo(int)"}
    assert demangled([]) == {}
