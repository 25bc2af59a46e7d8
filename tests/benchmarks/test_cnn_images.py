"""The images of cnn_training: which rank gets which, the stand-in, the real CIFAR-10."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from cnn_training import dataset
from harness.program import ProgramError
from harness.staging import file_path
from tests.benchmarks.cnn_programs import CIFAR10, DECLARED, LENET, PROGRAM, steps
from tests.benchmarks.programs import Later, warm

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
images = Later("cnn_training.images")

FILES, PER_FILE = 4, 8
SMALL = {"input": "tfrecords", "data_images": FILES * PER_FILE, "images_per_file": PER_FILE}


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


def test_synthetic_pipeline_of_all_devices_is_that_of_one():
    params = CIFAR10 | {"input": "pipeline"}
    whole, labels = steps(images.rank_dataset(params | {"batch_size": 16}, 0), 3)
    assert len(np.unique(whole.reshape(48, -1), axis=0)) > 20  # made anew, out of a pool
    split = params | {"ranks": 2, "devices_per_rank": 2, "batch_size": 4}
    for kind, expected in enumerate((whole, labels)):
        parts = [steps(images.rank_dataset(split, rank), 3)[kind] for rank in range(2)]
        joined = np.concatenate(parts, axis=1).reshape(expected.shape)
        np.testing.assert_array_equal(joined, expected)


# ---- The stand-in


def stage(out, *more, data_set="cifar10", train=FILES):
    identity = {"data_set": data_set, "images_per_file": PER_FILE}
    return PROGRAM.stage(out, {"train": train}, *more, how=warm, **identity)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Folders of two small stand-ins, by data set."""
    folders = {}
    for data_set, workers in (("cifar10", ("--workers", 2)), ("imagenet", ())):
        folders[data_set] = tmp_path_factory.mktemp(data_set) / "set"
        done = stage(folders[data_set], *workers, data_set=data_set)
        assert done.returncode == 0, done.stderr
        assert "made 4 of 4 files" in done.stdout
    return folders


def labels_in(path):
    """Label of every record of a file."""
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        yield feature["image/class/label"].int64_list.value[0]


@pytest.mark.parametrize("data_set", ["cifar10", "imagenet"])
def test_declared_bytes_per_file_are_about_right(stand_in, data_set):
    params = {"data_set": data_set, "images_per_file": PER_FILE}
    fmt = dataset.StandIn.from_params(params)
    largest = max(path.stat().st_size for path in stand_in[data_set].glob("train/*"))
    assert 0.9 * fmt.file_bytes < largest <= fmt.file_bytes
    declared = eval(DECLARED["data"]["bytes_per_file"], {"__builtins__": {}}, params)
    assert declared == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize(("params", "data_format"), [(CIFAR10, "NHWC"), (LENET, "NCHW")])
def test_tfrecord_pipeline(stand_in, params, data_format):
    params = params | SMALL | {"devices_per_rank": 2, "data_format": data_format}
    taken, labels = steps(images.rank_dataset(params, 0, stand_in[params["data_set"]]), 12)
    height, width, channels = images.Share(params, 0).shape
    shape = (height, width, channels) if data_format == "NHWC" else (channels, height, width)
    assert taken.shape == (12, 2, 4, *shape)
    assert (taken.dtype, labels.dtype) == (np.float32, np.int32)
    assert -1 <= taken.min() < -0.5 < 0.5 < taken.max() <= 1
    # 96 images of 32: the same ones three times, though cut and mirrored in other ways.
    paths = [file_path(stand_in[params["data_set"]], "train", f) for f in range(FILES)]
    stored = [label for path in paths for label in labels_in(path)]
    assert set(labels.ravel()) == set(stored)
    assert len(np.unique(taken.reshape(96, -1), axis=0)) > 64


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_ranks_share_all_records_and_none_twice(stand_in, ranks):
    """With 8 ranks for 4 files the records are dealt out, else whole files."""
    folder = stand_in["cifar10"]
    stored = {
        record
        for index in range(FILES)
        for record in tf.data.TFRecordDataset(file_path(folder, "train", index)).as_numpy_iterator()
    }
    shares = []
    for rank in range(ranks):
        share = images.Share(CIFAR10 | {"ranks": ranks}, rank)
        stream = images.shared_records(folder, FILES * PER_FILE, PER_FILE, share)
        shares.append(list(stream.take(4 * FILES * PER_FILE).as_numpy_iterator()))
    assert set().union(*shares) == stored
    assert sum(len(set(share)) for share in shares) == len(stored) == FILES * PER_FILE
    assert shares[0] != sorted(shares[0])


def test_missing_empty_and_too_few_files(tmp_path, stand_in):
    folder = shutil.copytree(stand_in["cifar10"], tmp_path / "set")

    def refused(**params):
        rank = params.pop("rank", 0)
        with pytest.raises(ProgramError) as caught:
            images.rank_dataset(CIFAR10 | SMALL | params, rank, folder)
        return caught.value.code, str(caught.value)

    assert refused(ranks=FILES * PER_FILE + 1)[0] == 2
    Path(file_path(folder, "train", 3)).write_bytes(b"")
    assert refused() == (65, f"{file_path(folder, 'train', 3)} is empty")
    Path(file_path(folder, "train", 3)).unlink()
    Path(file_path(folder, "train", 1)).unlink()
    missing = (66, f"missing {file_path(folder, 'train', 1)}")
    assert refused() == refused(ranks=2, rank=1) == refused(ranks=8) == missing
    images.rank_dataset(CIFAR10 | SMALL | {"ranks": 2}, 0, folder)  # this rank's files are there
    (folder / "format.json").write_text(json.dumps({"format_version": 0}))
    assert refused()[0] == 66
    with pytest.raises(ProgramError, match="no data set"):
        images.rank_dataset(CIFAR10 | SMALL, 0, None)
