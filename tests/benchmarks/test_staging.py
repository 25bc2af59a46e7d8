"""Staging the data set: content, growth, repair, kill, refusal."""

import json
import signal
import subprocess
import time

import pytest

from cosmoflow_data import dataset
from input_pipeline import python_samples
from tests.benchmarks.programs import Program, warm

SHAPE = (4, 4, 4, 4)
PARAMS = {"sample_shape": list(SHAPE), "samples_per_file": 2, "compression": "none"}
FORMAT = dataset.Format(SHAPE, 2)
PROGRAM = Program("data_loading", PARAMS)


def stage(out, train, *more, **how):
    return PROGRAM.stage(out, {"train": train, "valid": 2}, *more, **how)


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.tfrecord")}


def as_generated(path, split, index):
    """Whether the records of a file are the samples of the generator."""
    records = python_samples.records(str(path))
    found = [dataset.parse(record, SHAPE) for record in records]
    made = dataset.samples(FORMAT, split, index)
    return all(
        (x == a).all() and (y == b).all() for (x, y), (a, b) in zip(found, made, strict=True)
    )


@pytest.mark.slow
def test_stage_grow_and_repair(tmp_path):
    out = tmp_path / "set"
    done = stage(out, 5, "--workers", 2)
    assert done.returncode == 0, done.stderr
    assert "made 7 of 7 files" in done.stdout
    first = content(out)
    assert len(first) == 7
    for name, data in first.items():  # train/part-000000.tfrecord
        assert len(data) == FORMAT.file_bytes
        assert as_generated(out / name, name.parent.name, int(name.stem[-6:]))
    assert json.loads((out / "format.json").read_text())["seed"] == dataset.SEED

    # One file gone, one cut short, three more wanted: the others stay untouched.
    (out / "train" / "part-000001.tfrecord").unlink()
    with (out / "valid" / "part-000000.tfrecord").open("r+b") as file:
        file.truncate(100)
    kept = out / "train" / "part-000000.tfrecord"
    modified = kept.stat().st_mtime_ns
    done = stage(out, 8, how=warm)
    assert "made 5 of 10 files" in done.stdout, done.stderr
    second = content(out)
    assert {name: second[name] for name in first} == first
    assert len(second) == 10
    assert kept.stat().st_mtime_ns == modified
    assert "all 10 files are there" in stage(out, 8).stdout


@pytest.mark.slow
def test_kill_leaves_no_half_file(tmp_path):
    out = tmp_path / "set"
    params = {"sample_shape": [32, 32, 32, 4], "samples_per_file": 16}
    fmt = dataset.Format.from_params(PARAMS | params)
    words = PROGRAM.stage_words(out, {"train": 400, "valid": 0}, **params)
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(out.glob("train/*.tfrecord")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    whole = list(out.glob("train/*.tfrecord"))
    assert 0 < len(whole) < 400
    assert all(fmt.is_complete(path) for path in whole)


def test_refuses_a_full_disk_and_a_folder_with_other_data(tmp_path):
    out = tmp_path / "set"
    done = stage(out, 5, "--reserve-gb", 1e9)
    assert done.returncode == 1 and not out.exists()
    assert done.stderr.count("\n") == 1 and "GB free" in done.stderr and str(out) in done.stderr
    (tmp_path / "format.json").write_text(json.dumps(dataset.Format((8, 8, 8, 4), 2).describe()))
    done = stage(tmp_path, 5)
    assert done.returncode == 1 and "sample_shape" in done.stderr
