"""The images of cnn_training by rank, of each input, and epochs of training on them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from cnn_training import dataset
from harness.program import ProgramError
from harness.staging import file_path
from tests.benchmarks.programs import Later, read, warm
from tests.benchmarks.test_cnn_training import PROGRAM, start

pytestmark = pytest.mark.slow
tf = Later("tensorflow")
images = Later("cnn_training.images")

FILES, TRAINED, PER_FILE = 6, 4, {"cifar10": 64, "imagenet": 4}
COUNTS = (7, 6, 5, 4, 8)  # images in each file of a small CIFAR-10; really 10,000
CIFAR10, IMAGENET = (
    PROGRAM.defaults
    | {"data_set": data_set, "model": model, "input": "tfrecords", "batch_size": 4}
    | {"images_per_file": PER_FILE[data_set], "data_images": TRAINED * PER_FILE[data_set]}
    for data_set, model in (("cifar10", "alexnet"), ("imagenet", "lenet"))
)
EPOCHS = CIFAR10 | {"epochs": 8, "validation_images": (FILES - TRAINED) * PER_FILE["cifar10"]}


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Folders of two small stand-ins, by data set."""
    folders = {}
    for params, files in ((CIFAR10, FILES), (IMAGENET, TRAINED)):
        folder = tmp_path_factory.mktemp("stand-in") / "set"
        done = PROGRAM.stage(folder, {"train": files}, how=warm, **params)
        assert f"made {files} of {files} files" in done.stdout, done.stderr
        folders[params["data_set"]] = folder
    return folders


@pytest.fixture
def real(tmp_path, monkeypatch):
    """A small CIFAR-10 as its authors write it: its folder, pixels ``[30, 32, 32, 3]``, labels."""
    rng, total = np.random.default_rng(9), sum(COUNTS)
    pixels = rng.integers(0, 256, (total, 3, 32, 32), np.uint8)
    labels = rng.integers(0, 10, total, np.uint8)
    rows = np.column_stack([labels, pixels.reshape(total, -1)])
    for name, part in zip(
        dataset.CIFAR10_TRAIN, np.split(rows, np.cumsum(COUNTS)[:-1]), strict=True
    ):
        (tmp_path / name).write_bytes(part.tobytes())
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
    return tmp_path, pixels.transpose(0, 2, 3, 1), labels


def stored(folder, numbers):
    """Encoded images and labels in files of a stand-in."""
    paths = [file_path(folder, "train", number) for number in numbers]
    for record in tf.data.TFRecordDataset(paths).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        label = feature["image/class/label"].int64_list.value[0]
        yield feature["image/encoded"].bytes_list.value[0], label


def joined(batches):
    """Images and labels of batches, each as one array."""
    return [np.concatenate(each) for each in zip(*batches, strict=True)]


def steps(params, count, rank=0, folder=None):
    """The first steps of a pipeline: images ``[step, device, batch, ...]`` and labels."""
    taken = list(images.rank_dataset(params, rank, folder).take(count).as_numpy_iterator())
    return [np.array(each) for each in zip(*taken, strict=True)]


def refused(make, params, *more):
    with pytest.raises(ProgramError) as caught:
        make(params, *more)
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize("params", [CIFAR10, IMAGENET], ids=["cifar10", "imagenet"])
def test_declared_bytes_per_file_are_about_right(stand_in, params):
    fmt = dataset.StandIn.from_params(params)
    paths = stand_in[params["data_set"]].glob("train/*")
    largest = max(path.stat().st_size for path in paths)
    assert 0.9 * fmt.file_bytes < largest <= fmt.file_bytes
    declared = eval(PROGRAM.declared["data"]["bytes_per_file"], {"__builtins__": {}}, params)
    assert declared == pytest.approx(largest, rel=0.1)


@pytest.mark.parametrize(
    ("params", "kind", "data_format"),
    [
        (CIFAR10, "pipeline", "NCHW"),
        (IMAGENET, "pipeline", "NHWC"),
        (CIFAR10, "tfrecords", "NHWC"),
        (IMAGENET, "tfrecords", "NCHW"),
    ],
)
def test_pipelines(stand_in, params, kind, data_format):
    data_set = params["data_set"]
    params = params | {"input": kind, "devices_per_rank": 2, "data_format": data_format}
    count = 5 * params["data_images"] // 8 if kind == "tfrecords" else 12  # of 5 passes, all
    taken, labels = steps(params, count, folder=stand_in[data_set])
    height, width, channels = images.shape_of(params)
    shape = (height, width, channels) if data_format == "NHWC" else (channels, height, width)
    assert taken.shape == (count, 2, 4, *shape)
    assert (taken.dtype, labels.dtype) == (np.float32, np.int32)
    assert -1 <= taken.min() < -0.5 < 0.5 < taken.max() <= 1
    # The same ones three times or more, though cut and mirrored in other ways; on no other rank.
    seen = np.unique(taken.reshape(count * 8, -1), axis=0)
    if kind == "tfrecords":
        known = {label for _, label in stored(stand_in[data_set], range(TRAINED))}
        assert set(labels.ravel()) == known
    else:
        assert (steps(params | {"ranks": 2}, count, rank=1)[0] != taken).any()
    assert len(seen) > (20 if kind == "pipeline" else 2 * params["data_images"])


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_share_all_records_and_none_twice(stand_in, ranks):
    folder = stand_in["cifar10"]
    paths = [file_path(folder, "train", number) for number in range(TRAINED)]
    records = set(tf.data.TFRecordDataset(paths).as_numpy_iterator())
    shares = []
    for rank in range(ranks):
        stream = images.shared_records(CIFAR10 | {"ranks": ranks}, rank, folder)
        shares.append(list(stream.take(4 * len(records)).as_numpy_iterator()))
    assert set().union(*shares) == records
    assert sum(len(set(share)) for share in shares) == len(records) == CIFAR10["data_images"]
    assert shares[0] != sorted(shares[0])


def test_a_stand_in_that_is_not_whole_is_refused(tmp_path, stand_in):
    folder = shutil.copytree(stand_in["cifar10"], tmp_path / "set")
    first, last = (Path(file_path(folder, "train", number)) for number in (0, FILES - 1))
    first.write_bytes(first.read_bytes()[:5000])
    done, _ = start(tmp_path, data=folder, **CIFAR10)
    assert done.returncode == 65 and f"{first} is damaged (" in done.stderr
    last.unlink()
    images.rank_dataset(CIFAR10, 0, folder)  # without epochs, which validate on it
    code, said = refused(images.rank_dataset, EPOCHS, 0, folder)
    assert code == 66 and f"1 of 6 train files (first train/{last.name})" in said
    assert "no data set" in refused(images.rank_dataset, CIFAR10, 0, None)[1]
    first.write_bytes(b"")
    assert refused(images.rank_dataset, CIFAR10, 0, folder) == (65, f"{first} is empty")


def test_images_of_the_stand_in_are_held_back(stand_in):
    folder, params = stand_in["cifar10"], EPOCHS | {"data_format": "NCHW"}
    pixels, labels = joined(images.held_back(params, folder).as_numpy_iterator())
    kept = list(stored(folder, range(TRAINED, FILES)))
    assert labels.tolist() == [label for _, label in kept]
    wanted = np.stack([np.frombuffer(raw, np.uint8).reshape(32, 32, 3) for raw, _ in kept])
    shown = np.rint((np.moveaxis(pixels, 1, -1) + 1) * 127.5)
    np.testing.assert_array_equal(shown, wanted)


def test_images_of_the_real_cifar10(real):
    folder, pixels_of_all, labels_of_all = real
    params = EPOCHS | {"input": "cifar10", "data_images": 20, "ranks": 2, "batch_size": 5}
    np.testing.assert_array_equal(dataset.read_cifar10(dataset.CIFAR10_TRAIN)[0], pixels_of_all)
    for rank in range(2):  # an epoch of each: its images of the first 20, each once
        _, drawn = steps(params, 2, rank)
        assert sorted(drawn.ravel()) == sorted(labels_of_all[:20][rank::2])
    few = refused(images.rank_dataset, params | {"data_images": 31}, 0)
    assert few == (2, "31 images are wanted of CIFAR-10, which here has 30 of them")
    assert refused(images.held_back, params) == (
        66,
        f"CIFAR10_DIR must name the folder with test_batch.bin: no file {folder}/test_batch.bin",
    )
    shutil.copy(folder / dataset.CIFAR10_TRAIN[-1], folder / "test_batch.bin")
    batches = list(images.held_back(params | {"validation_images": 8}).as_numpy_iterator())
    assert [len(labels) for _, labels in batches] == [5, 3]
    pixels, labels = joined(batches)
    np.testing.assert_array_equal(np.rint((pixels + 1) * 127.5), pixels_of_all[-8:])
    np.testing.assert_array_equal(labels, labels_of_all[-8:])


@pytest.mark.parametrize("content", [bytes(3074), bytes([10]) + bytes(3072), b""])
def test_damaged_files_of_cifar10_are_65(real, content):
    path = real[0] / dataset.CIFAR10_TRAIN[2]
    path.write_bytes(content)
    code, said = refused(dataset.read_cifar10, dataset.CIFAR10_TRAIN)
    assert code == 65 and str(path) in said


def test_training_ends_when_the_target_is_met(tmp_path, stand_in):
    """The accuracy can only rise if the weights that two devices have trained are validated."""
    params = EPOCHS | {"variable_update": "replicated", "devices_per_rank": 2, "batch_size": 16}
    params |= {"learning_rate": 0.02, "optimizer": "momentum", "target_accuracy": 0.5}
    native, samples = read(*start(tmp_path, data=stand_in["cifar10"], **params))
    accuracy, trained = samples["validation_accuracy"][:, 0], params["data_images"]
    epochs = len(accuracy)
    assert 1 < epochs <= 8 and accuracy[-1] >= 0.5 > accuracy[:-1].max()
    assert {len(each) for each in samples.values()} == {epochs}
    values = {name: metric["value"] for name, metric in native["metrics"].items()}
    assert values["time_to_target"] == samples["epoch_ends"][-1, 0]
    assert values["final_loss"] == samples["loss"][-1, 0] < samples["loss"][0, 0]
    rate = trained * epochs / samples["global_times"].sum()
    assert values["total_images_per_second"] == pytest.approx(rate)
    assert native["work"]["samples"] == trained * epochs
    assert native["notes"]["spans"]["steps_per_epoch"] == trained // 32
