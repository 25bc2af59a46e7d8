"""The images of cnn_training: which rank gets which, the stand-in, the real CIFAR-10."""

import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

BENCHMARKS = Path(__file__).resolve().parents[2] / "workflow" / "benchmarks"
FOLDER = BENCHMARKS / "cnn_training"
sys.path.insert(0, str(BENCHMARKS))
sys.path.insert(0, str(FOLDER))

import cifar
import harness  # noqa: F401  (before TensorFlow: it chooses the Keras)
import images
import records
import tensorflow as tf
from harness.program import ProgramError

pytestmark = pytest.mark.slow

DECLARED = yaml.safe_load((FOLDER / "benchmark.yaml").read_text())
DEFAULTS = {name: spec["default"] for name, spec in DECLARED["parameters"].items()}
CIFAR10 = DEFAULTS | {"model": "resnet20", "data_set": "cifar10", "batch_size": 4}
LENET = DEFAULTS | {"model": "lenet", "data_set": "imagenet", "batch_size": 4}
FILES, PER_FILE = 4, 8
SMALL = {"input": "tfrecords", "data_images": FILES * PER_FILE, "images_per_file": PER_FILE}


def steps(data, count):
    """The first steps of a pipeline: images [step, device, batch, ...] and labels."""
    taken = list(data.take(count).as_numpy_iterator())
    return np.array([each[0] for each in taken]), np.array([each[1] for each in taken])


# ---- Made images


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_fixed_batches_of_all_devices_are_those_of_one(data_format):
    layout = {"data_format": data_format}
    whole, labels = images.fixed_batches(CIFAR10 | layout | {"batch_size": 12}, 0)[0]
    assert (whole.dtype, labels.dtype) == (np.float32, np.int32)
    assert whole.shape == ((12, 32, 32, 3) if data_format == "NHWC" else (12, 3, 32, 32))
    assert -1 <= whole.min() < -0.99
    assert 0.99 < whole.max() <= 1
    assert labels.min() >= 0
    assert labels.max() < 10
    for ranks, devices in ((3, 1), (1, 3), (3, 2)):
        params = CIFAR10 | layout | {"ranks": ranks, "devices_per_rank": devices}
        params["batch_size"] = 12 // ranks // devices
        parts = [part for rank in range(ranks) for part in images.fixed_batches(params, rank)]
        assert len(parts) == ranks * devices
        np.testing.assert_array_equal(np.concatenate([part[0] for part in parts]), whole)
        np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), labels)


def test_fixed_batch_depends_on_the_seed():
    first, same, other = (images.fixed_batch((8, 8, 3), 10, seed, 5, 2)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, same)
    assert abs(first - other).max() > 0.5
    assert abs(first[0] - first[1]).max() > 0.5
    # Unlike the initial weights of the same seed (NumPy takes seeds 1 and [1, 0] for the same).
    assert abs(np.corrcoef(first[0].ravel(), np.random.default_rng(1).random(192))[0, 1]) < 0.3


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 5, 3)])
def test_layout_of_arrays_and_tensors(shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    expected = np.moveaxis(array, -1, -3)
    turned = images.to_layout(array, "NCHW")
    assert turned.flags.c_contiguous
    np.testing.assert_array_equal(turned, expected)
    np.testing.assert_array_equal(images.to_layout(tf.constant(array), "NCHW"), expected)
    assert images.to_layout(array, "NHWC") is array


@pytest.mark.parametrize("params", [CIFAR10, LENET])
def test_synthetic_pipeline_of_all_devices_is_that_of_one(params):
    params = params | {"input": "pipeline"}
    whole, labels = steps(images.rank_dataset(params | {"batch_size": 16}, 0), 3)
    assert whole.shape == (3, 1, 16, *images.Share.from_params(params, 0).shape)
    assert (whole.dtype, labels.dtype) == (np.float32, np.int32)
    assert -1 <= whole.min() < -0.9 < 0.9 < whole.max() <= 1
    assert len(np.unique(whole.reshape(48, -1), axis=0)) > 20  # made anew, out of a pool
    split = params | {"ranks": 2, "devices_per_rank": 2, "batch_size": 4}
    parts = [steps(images.rank_dataset(split, rank), 3) for rank in range(2)]
    joined = np.concatenate([part[0] for part in parts], axis=1).reshape(whole.shape)
    np.testing.assert_array_equal(joined, whole)
    joined = np.concatenate([part[1] for part in parts], axis=1).reshape(labels.shape)
    np.testing.assert_array_equal(joined, labels)
    turned, _ = steps(images.rank_dataset(params | {"data_format": "NCHW", "batch_size": 16}, 0), 3)
    np.testing.assert_array_equal(turned, np.moveaxis(whole, -1, -3))


# ---- The stand-in


def stage(out, *more, data_set="cifar10", train=FILES):
    params = json.dumps({"data_set": data_set, "images_per_file": PER_FILE})
    words = [sys.executable, FOLDER / "stage.py", "--out", out, "--train", train]
    words += ["--params", params, *more]
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=240
    )


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Folders of two small stand-ins, by data set."""
    folders = {}
    for data_set in ("cifar10", "imagenet"):
        folders[data_set] = tmp_path_factory.mktemp(data_set) / "set"
        done = stage(folders[data_set], "--workers", 2, data_set=data_set)
        assert done.returncode == 0, done.stderr
        assert "made 4 of 4 files" in done.stdout
    return folders


def copy(folder, to):
    """Copy the stand-in of cifar10, to damage it."""
    (to / "train").mkdir(parents=True)
    for index in range(FILES):
        Path(records.file_path(to, index)).write_bytes(
            Path(records.file_path(folder, index)).read_bytes()
        )
    return to


def examples(path):
    """Encoded image and label of every record of a file."""
    found = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        label = feature["image/class/label"].int64_list.value[0]
        found.append((feature["image/encoded"].bytes_list.value[0], label))
    return found


def test_staging_twice_changes_nothing_and_growth_adds(tmp_path, stand_in):
    out = copy(stand_in["cifar10"], tmp_path / "set")
    paths = [Path(records.file_path(out, index)) for index in range(FILES)]
    content = [path.read_bytes() for path in paths]
    modified = [path.stat().st_mtime_ns for path in paths]
    assert "all 4 files are there" in stage(out).stdout
    assert json.loads((out / "format.json").read_text())["data_set"] == "cifar10"

    paths[1].unlink()
    paths[2].write_bytes(content[2][:-1])
    done = stage(out, "--check")
    assert done.returncode == 66
    assert "2 of 4 files missing or incomplete" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "made 3 of 5 files" in stage(out, train=5).stdout
    assert [path.read_bytes() for path in paths] == content
    assert paths[0].stat().st_mtime_ns == modified[0]
    assert stage(out, "--check", train=5).returncode == 0
    assert len(set(content)) == FILES

    done = stage(out, data_set="imagenet")
    assert done.returncode == 1
    assert "data_set cifar10, not imagenet" in done.stderr


@pytest.mark.parametrize("params", [{}, {"data_set": "mnist", "images_per_file": 1}, [1]])
def test_staging_refuses_wrong_parameters(tmp_path, params):
    done = stage(tmp_path / "set", "--params", json.dumps(params))
    assert done.returncode == 2
    assert "--params" in done.stderr.splitlines()[-1]


def test_stand_in_of_cifar10_shows_the_class(stand_in):
    patterns = np.array([records._pattern(label, (4, 4)) for label in range(10)])
    patterns = patterns.repeat(8, axis=1).repeat(8, axis=2).reshape(10, -1)
    found = examples(records.file_path(stand_in["cifar10"], 0))
    assert len(found) == PER_FILE
    pixels = np.array([np.frombuffer(image, np.uint8) for image, _ in found], float)
    guessed = ((pixels - 128) @ patterns.T).argmax(axis=1)
    assert (guessed == [label for _, label in found]).mean() > 0.8
    assert Path(records.file_path(stand_in["cifar10"], 0)).stat().st_size == PER_FILE * 3146


def test_stand_in_of_imagenet_is_jpegs_of_its_size(stand_in):
    sizes = []
    for image, label in examples(records.file_path(stand_in["imagenet"], 1)):
        assert tf.io.decode_jpeg(image).shape in records.JPEG_SHAPES
        assert 0 <= label < 1000
        sizes.append(len(image))
    assert 100e3 < np.mean(sizes) < 119e3


@pytest.mark.parametrize("data_set", ["cifar10", "imagenet"])
def test_declared_bytes_per_file_are_about_right(stand_in, data_set):
    params = {"data_set": data_set, "images_per_file": PER_FILE}
    fmt = records.StandIn.from_params(params)
    largest = max(path.stat().st_size for path in stand_in[data_set].glob("train/*"))
    assert 0.9 * fmt.file_bytes < largest <= fmt.file_bytes
    declared = eval(DECLARED["data"]["bytes_per_file"], {"__builtins__": {}}, params)
    assert declared == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize("params", [CIFAR10, LENET])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_tfrecord_pipeline(stand_in, params, data_format):
    params = params | SMALL | {"devices_per_rank": 2, "data_format": data_format}
    taken, labels = steps(images.rank_dataset(params, 0, stand_in[params["data_set"]]), 12)
    height, width, channels = images.Share.from_params(params, 0).shape
    shape = (height, width, channels) if data_format == "NHWC" else (channels, height, width)
    assert taken.shape == (12, 2, 4, *shape)
    assert (taken.dtype, labels.dtype) == (np.float32, np.int32)
    assert -1 <= taken.min() < -0.5 < 0.5 < taken.max() <= 1
    # 96 images of 32: the same ones three times, though cut and mirrored in other ways.
    stored = [
        label
        for f in range(FILES)
        for _, label in examples(records.file_path(stand_in[params["data_set"]], f))
    ]
    assert set(labels.ravel()) == set(stored)
    assert len(np.unique(taken.reshape(96, -1), axis=0)) > 64


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_share_all_records_and_none_twice(stand_in, ranks):
    """With 8 ranks for 4 files the records are dealt out, else whole files."""
    folder = stand_in["cifar10"]
    stored = {
        record
        for index in range(FILES)
        for record in tf.data.TFRecordDataset(records.file_path(folder, index)).as_numpy_iterator()
    }
    shares = []
    for rank in range(ranks):
        share = images.Share.from_params(CIFAR10 | {"ranks": ranks}, rank)
        stream = images.shared_records(folder, FILES * PER_FILE, PER_FILE, share)
        shares.append(list(stream.take(4 * FILES * PER_FILE).as_numpy_iterator()))
    assert set().union(*shares) == stored
    assert sum(len(set(share)) for share in shares) == len(stored) == FILES * PER_FILE
    assert shares[0] != sorted(shares[0])


@pytest.mark.parametrize("damage", ["a byte", "cut short"])
def test_damaged_record_is_data_loss(tmp_path, stand_in, damage):
    folder = copy(stand_in["cifar10"], tmp_path / "set")
    path = Path(records.file_path(folder, 2))
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content if damage == "a byte" else content[:4000])
    data = images.rank_dataset(CIFAR10 | SMALL, 0, folder)
    with pytest.raises(tf.errors.DataLossError):
        steps(data, 3 * FILES * PER_FILE)


def test_missing_empty_and_too_few_files(tmp_path, stand_in):
    folder = copy(stand_in["cifar10"], tmp_path / "set")

    def refused(**params):
        rank = params.pop("rank", 0)
        with pytest.raises(ProgramError) as caught:
            images.rank_dataset(CIFAR10 | SMALL | params, rank, folder)
        return caught.value.code, str(caught.value)

    assert refused(ranks=FILES * PER_FILE + 1)[0] == 2
    Path(records.file_path(folder, 3)).write_bytes(b"")
    assert refused() == (65, f"{records.file_path(folder, 3)} is empty")
    Path(records.file_path(folder, 3)).unlink()
    Path(records.file_path(folder, 1)).unlink()
    missing = (66, f"missing {records.file_path(folder, 1)}")
    assert refused() == refused(ranks=2, rank=1) == refused(ranks=8) == missing
    images.rank_dataset(CIFAR10 | SMALL | {"ranks": 2}, 0, folder)  # this rank's files are there
    (folder / "format.json").write_text(json.dumps({"format_version": 0}))
    assert refused()[0] == 66
    with pytest.raises(ProgramError, match="no data set"):
        images.rank_dataset(CIFAR10 | SMALL, 0, None)


# ---- The real CIFAR-10


class Python2Pickler(pickle._Pickler):
    """Writes text and bytes as Python 2 did, in which CIFAR-10 was pickled."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def save_text(self, text):
        text = text.encode("latin1") if isinstance(text, str) else text
        self.write(pickle.BINSTRING + len(text).to_bytes(4, "little") + text)
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = save_text


def dump(content, protocol):
    if protocol is not None:
        return pickle.dumps(content, protocol)
    buffer = io.BytesIO()
    Python2Pickler(buffer, 2).dump(content)
    return buffer.getvalue()


COUNTS = (7, 6, 5, 4, 8)  # images in each file; really 10,000


@pytest.fixture
def published():
    """Images [30, 3, 32, 32] and labels [30] of a small CIFAR-10."""
    rng = np.random.default_rng(9)
    total = sum(COUNTS)
    return rng.integers(0, 256, (total, 3, 32, 32), np.uint8), rng.integers(0, 10, total)


def write(folder, published, protocol="binary"):
    """Write it as its authors do: pickles (protocol None is Python 2's) or binary files."""
    folder.mkdir(parents=True)
    ends = np.cumsum(COUNTS)
    for number, end in enumerate(ends, 1):
        part = slice(end - COUNTS[number - 1], end)
        data, labels = (array[part] for array in published)
        data = data.reshape(len(data), -1)
        if protocol == "binary":
            rows = np.column_stack([labels.astype(np.uint8), data])
            (folder / f"data_batch_{number}.bin").write_bytes(rows.tobytes())
        else:
            content = {
                "batch_label": "x",
                "labels": labels.tolist(),
                "data": data,
                "filenames": [f"{n}.png" for n in range(len(data))],
            }
            (folder / f"data_batch_{number}").write_bytes(dump(content, protocol))


@pytest.mark.parametrize("protocol", ["binary", None, 2, 4])
@pytest.mark.parametrize("parent", [True, False])
def test_reading_cifar10(tmp_path, monkeypatch, published, protocol, parent):
    folder = tmp_path / f"cifar-10-batches-{'bin' if protocol == 'binary' else 'py'}"
    write(folder, published, protocol)
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path if parent else folder))
    everything, labels = cifar.read(0, 1)
    np.testing.assert_array_equal(everything, published[0].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(labels, published[1])
    for rank in range(4):
        mine, my_labels = cifar.read(rank, 4)
        np.testing.assert_array_equal(mine, everything[rank::4])
        np.testing.assert_array_equal(my_labels, labels[rank::4])


def test_cifar10_pipeline(tmp_path, monkeypatch, published):
    write(tmp_path / "cifar-10-batches-bin", published)
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
    params = CIFAR10 | {"input": "cifar10", "ranks": 2, "batch_size": 5}
    taken, labels = steps(images.rank_dataset(params, 1), 3)
    assert taken.shape == (3, 1, 5, 32, 32, 3)
    # An epoch of this rank is 15 images, each once.
    assert sorted(labels.ravel()) == sorted(published[1][1::2])
    assert -1 <= taken.min() < -0.9 < 0.9 < taken.max() <= 1
    with pytest.raises(ProgramError, match="no image for rank 30"):
        images.rank_dataset(params | {"ranks": 31}, 30)


class Malicious:
    """A pickle of it calls a function when it is read."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("where", ["whole", "data", "labels"])
def test_pickles_that_call_something_are_refused(tmp_path, monkeypatch, published, where, protocol):
    write(tmp_path / "set", published, protocol)
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path / "set"))
    path = tmp_path / "set" / "data_batch_3"
    trace = tmp_path / "trace"
    for function, arguments, name in (
        (os.system, (f"touch {trace}",), "posix.system"),
        (eval, (f"open({str(trace)!r}, 'w')",), "builtins.eval"),
        (np.save, (str(trace), 1), "numpy.save"),
    ):
        content = Malicious(function, *arguments)
        path.write_bytes(dump(content if where == "whole" else {where: content}, protocol))
        with pytest.raises(ProgramError, match="it asks for") as caught:
            cifar.read(0, 1)
        assert caught.value.code == 65
        assert str(path) in str(caught.value)
        assert name.rpartition(".")[2] in str(caught.value)
        assert not list(tmp_path.glob("trace*"))
        pickle.loads(path.read_bytes())  # else this test could not fail
        assert list(tmp_path.glob("trace*"))
        for left in tmp_path.glob("trace*"):
            left.unlink()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02}",
        pickle.dumps([1]),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8)}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": [1, 10]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8), "labels": ["1", "2"]}),
        pickle.dumps({"data": np.zeros((2, 3071), np.uint8), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.int16), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((3072, 2), np.uint8).T, "labels": [1, 2]}),
        pickle.dumps({"data": np.array([[None] * 3072] * 2), "labels": [1, 2]}),
        pickle.dumps({"data": [1, 2], "labels": [1, 2]}),
    ],
)
def test_damaged_pickles_are_65(tmp_path, content):
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(ProgramError) as caught:
        cifar.read_batch(path)
    assert caught.value.code == 65
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", bytes(3074), bytes([10]) + bytes(3072)])
def test_damaged_binary_files_are_65(tmp_path, content):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(content)
    with pytest.raises(ProgramError) as caught:
        cifar.read_batch(path)
    assert caught.value.code == 65


def test_missing_cifar10_is_66_and_says_what_was_looked_for(tmp_path, monkeypatch, published):
    params = CIFAR10 | {"input": "cifar10"}

    def refused():
        with pytest.raises(ProgramError) as caught:
            images.rank_dataset(params, 0)
        assert caught.value.code == 66
        return str(caught.value)

    monkeypatch.delenv("CIFAR10_DIR", raising=False)
    assert "CIFAR10_DIR is not set" in refused()
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
    for word in ("CIFAR10_DIR", str(tmp_path), "data_batch_1", "cifar-10-batches-py"):
        assert word in refused()
    write(tmp_path / "cifar-10-batches-bin", published)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_5.bin").unlink()
    assert str(tmp_path) in refused()
