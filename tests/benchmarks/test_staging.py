"""Staging the data set: content, growth, repair, kill, refusal."""

import gzip
import json
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from cosmoflow_data import dataset
from tests.benchmarks.programs import Program, entry, warm

SHAPE = (4, 4, 4, 4)
PARAMS = {"sample_shape": list(SHAPE), "samples_per_file": 2, "compression": "none"}
FORMAT = dataset.Format(SHAPE, 2)


PROGRAM = Program("data_loading", {})


def command(out, train, valid, *more, params=PARAMS, how=entry):
    files = {"train": train, "valid": valid}
    return PROGRAM.stage_words(out, files, *more, params=params, how=how)


def stage(*args, **params):
    return subprocess.run(command(*args, **params), capture_output=True, text=True, check=False)


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.tfrecord")}


def expected_bytes(fmt, split, index):
    """The payloads of a file's records, without frames and checksums."""
    return [dataset.example_bytes(x.tobytes(), y) for x, y in dataset.samples(fmt, split, index)]


def payloads(data):
    found = []
    while data:
        length = int.from_bytes(data[:8], "little")
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    return found


@pytest.mark.slow
def test_stage_grow_and_repair(tmp_path):
    out = tmp_path / "set"
    done = stage(out, 5, 2, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert "made 7 of 7 files" in done.stdout
    first = content(out)
    assert len(first) == 7
    for split, count in (("train", 5), ("valid", 2)):
        for index in range(count):
            data = first[Path(split) / f"part-{index:06d}.tfrecord"]
            assert len(data) == FORMAT.file_bytes
            assert payloads(data) == expected_bytes(FORMAT, split, index)
    assert json.loads((out / "format.json").read_text())["seed"] == dataset.SEED

    # One file gone, one cut short, three more wanted: the others stay untouched.
    (out / "train" / "part-000001.tfrecord").unlink()
    with (out / "valid" / "part-000000.tfrecord").open("r+b") as file:
        file.truncate(100)
    kept = out / "train" / "part-000000.tfrecord"
    modified = kept.stat().st_mtime_ns
    done = stage(out, 8, 2, how=warm)
    assert "made 5 of 10 files" in done.stdout, done.stderr
    second = content(out)
    assert {name: second[name] for name in first} == first
    assert len(second) == 10
    assert kept.stat().st_mtime_ns == modified
    assert "all 10 files are there" in stage(out, 8, 2).stdout


@pytest.mark.slow
def test_kill_leaves_no_half_file(tmp_path):
    out = tmp_path / "set"
    params = PARAMS | {"sample_shape": [32, 32, 32, 4], "samples_per_file": 16}
    fmt = dataset.Format.from_params(params)
    process = subprocess.Popen(
        command(out, 400, 0, params=params), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("train/*.tfrecord")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    whole = list(out.glob("train/*.tfrecord"))
    assert 0 < len(whole) < 400
    assert all(fmt.is_complete(path) for path in whole)


def test_refuses_a_full_disk_before_writing(tmp_path):
    out = tmp_path / "set"
    done = stage(out, 5, 2, "--reserve-gb", 1e9)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "GB free" in done.stderr
    assert str(out) in done.stderr
    assert not out.exists()


def test_refuses_a_folder_with_other_data(tmp_path):
    (tmp_path / "format.json").write_text(json.dumps(dataset.Format((8, 8, 8, 4), 2).describe()))
    done = stage(tmp_path, 5, 2)
    assert done.returncode == 1
    assert "sample_shape" in done.stderr


@pytest.mark.parametrize("params", [{}, [1]])
def test_wrong_parameters_are_told(tmp_path, params):
    done = stage(tmp_path, 5, 2, params=params)
    assert done.returncode == 2
    assert "--params" in done.stderr.splitlines()[-1]


def test_missing_lists_no_more_than_names(tmp_path):
    files = {"train": 2, "valid": 0}
    assert FORMAT.missing(None, files) == (66, "the run file names no data set")
    assert "2 of 2 train" in FORMAT.missing(tmp_path, files)[1]
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "part-000000.tfrecord").touch()
    code, problem = FORMAT.missing(tmp_path, files)
    assert code == 66 and "1 of 2 train files (first train/part-000001.tfrecord)" in problem
    (tmp_path / "train" / "part-000001.tfrecord").touch()
    assert FORMAT.missing(tmp_path, files) is None


def test_compressed_file_is_checked_by_its_size_before_compression(tmp_path):
    fmt = dataset.Format(SHAPE, 2, "GZIP")
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(bytes(fmt.file_bytes)))
    assert fmt.is_complete(path)
    path.write_bytes(path.read_bytes()[:-6])
    assert not fmt.is_complete(path)
    path.write_bytes(b"")
    assert not fmt.is_complete(path)


def test_poisson_quantiles_have_the_mean_and_variance_of_poisson():
    for rate in (0.5, 3.0, 8.2):
        table = dataset.poisson_quantiles(rate).astype(float)
        assert table.mean() == pytest.approx(rate, rel=2e-3)
        assert table.var() == pytest.approx(rate, rel=5e-3)


def test_x_depends_on_y_as_stated():
    fmt = dataset.Format((16, 16, 16, 4), 20)
    pairs = list(dataset.samples(fmt, "train", 3))
    means = np.array([x.mean(axis=(0, 1, 2)) for x, _ in pairs])
    targets = np.array([y for _, y in pairs])
    rates = np.exp(dataset.LOG_RATE + dataset.RATE_SLOPE * targets)
    np.testing.assert_allclose(means, rates, rtol=0.1)
    again = next(dataset.samples(fmt, "train", 3))
    assert np.array_equal(again[0], pairs[0][0])
    other = next(dataset.samples(fmt, "valid", 3))
    assert not np.array_equal(other[1], pairs[0][1])
