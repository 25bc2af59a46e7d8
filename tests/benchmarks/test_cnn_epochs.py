"""Training by epochs: which images are trained and validated on, and what the program says."""

import numpy as np
import pytest

from cnn_training import cifar
from harness.program import ProgramError
from harness.staging import file_path
from tests.benchmarks.cnn_programs import CIFAR10, PROGRAM, start, steps
from tests.benchmarks.programs import Later, read, warm

pytestmark = pytest.mark.slow
images = Later("cnn_training.images")

PER_FILE = 64
TRAINED, CHECKED = 256, 128
COUNTS = (7, 6, 5, 4, 8)  # images in each file of CIFAR-10; really 10,000


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    out = tmp_path_factory.mktemp("stand-in") / "set"
    identity = {"data_set": "cifar10", "images_per_file": PER_FILE}
    files = (TRAINED + CHECKED) // PER_FILE
    done = PROGRAM.stage(out, {"train": files}, how=warm, **identity)
    assert done.returncode == 0, done.stderr
    return out


PARAMS = CIFAR10 | {
    "epochs": 8, "input": "tfrecords", "data_images": TRAINED, "images_per_file": PER_FILE,
    "validation_images": CHECKED, "model": "alexnet", "batch_size": 16, "learning_rate": 0.02,
    "optimizer": "momentum",
}  # fmt: skip


def published(seed):
    """Images [30, 3, 32, 32] and labels [30] of a small CIFAR-10."""
    rng, total = np.random.default_rng(seed), sum(COUNTS)
    return rng.integers(0, 256, (total, 3, 32, 32), np.uint8), rng.integers(0, 10, total)


def write(folder, published):
    """Write it as its authors do."""
    folder.mkdir(parents=True)
    rows = np.column_stack([published[1].astype(np.uint8), published[0].reshape(sum(COUNTS), -1)])
    for number, part in enumerate(np.split(rows, np.cumsum(COUNTS)[:-1]), 1):
        (folder / f"data_batch_{number}.bin").write_bytes(part.tobytes())


def as_pixels(values):
    return np.rint((values + 1) * 127.5).astype(np.uint8)


def test_images_of_the_real_cifar10(tmp_path, monkeypatch):
    rng, folder = np.random.default_rng(4), tmp_path / "cifar-10-batches-bin"
    pixels_of_all, labels_of_all = published(9)
    write(folder, (pixels_of_all, labels_of_all))
    monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
    params = PARAMS | {"input": "cifar10", "data_images": 20, "ranks": 2, "batch_size": 5}
    for rank in range(2):
        mine, labels = cifar.read(rank, 2, 20)
        wanted = pixels_of_all[:20].transpose(0, 2, 3, 1)[rank::2]
        np.testing.assert_array_equal(mine, wanted)
        # An epoch of a rank: its images of the first 20, each once.
        _, drawn = steps(images.rank_dataset(params, rank), 2)
        assert sorted(drawn.ravel()) == sorted(labels_of_all[:20][rank::2]) == sorted(labels)

    def refused(**changes):
        with pytest.raises(ProgramError) as caught:
            images.held_back(params | changes)
        return caught.value.code, str(caught.value)

    assert refused() == (66, f"{folder}/test_batch.bin is missing, on which epochs are validated")
    test = rng.integers(0, 256, (9, 3, 32, 32), np.uint8), rng.integers(0, 10, 9).astype(np.uint8)
    rows = np.column_stack([test[1], test[0].reshape(9, -1)])
    (folder / "test_batch.bin").write_bytes(rows.tobytes())
    assert refused() == (2, "validation_images 128: CIFAR-10 here has 9 images")
    batches = list(images.held_back(params | {"validation_images": 8}).as_numpy_iterator())
    assert [len(labels) for _, labels in batches] == [5, 3]
    pixels, labels = (np.concatenate(each) for each in zip(*batches, strict=True))
    np.testing.assert_array_equal(as_pixels(pixels), test[0][:8].transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(labels, test[1][:8])
    with pytest.raises(ProgramError, match="data_images 31: CIFAR-10 here has 30 images"):
        images.rank_dataset(params | {"data_images": 31}, 0)


def test_images_of_the_stand_in_are_held_back(stand_in):
    import tensorflow as tf

    files = [file_path(stand_in, "train", 4), file_path(stand_in, "train", 5)]
    stored = [tf.train.Example.FromString(r).features.feature
              for r in tf.data.TFRecordDataset(files).as_numpy_iterator()]  # fmt: skip
    taken = images.held_back(PARAMS | {"data_format": "NCHW"}, stand_in).as_numpy_iterator()
    pixels, labels = (np.concatenate(each) for each in zip(*taken, strict=True))
    assert labels.tolist() == [f["image/class/label"].int64_list.value[0] for f in stored]
    raw = [np.frombuffer(f["image/encoded"].bytes_list.value[0], np.uint8) for f in stored]
    wanted = np.stack(raw).reshape(-1, 32, 32, 3)
    np.testing.assert_array_equal(as_pixels(np.moveaxis(pixels, 1, -1)), wanted)


def test_training_ends_when_the_target_is_met(tmp_path, stand_in):
    """The accuracy can only rise if the weights that two devices have trained are validated."""
    params = PARAMS | {"variable_update": "replicated", "devices_per_rank": 2}
    done, out = start(tmp_path, data=stand_in, **params | {"target_accuracy": 0.7})
    native, samples = read(done, out)
    accuracy = samples["validation_accuracy"][:, 0]
    epochs = len(accuracy)
    assert 1 < epochs <= 8 and accuracy[-1] >= 0.7 > accuracy[:-1].max()
    assert "step_times" not in samples
    assert {len(each) for each in samples.values()} == {epochs}
    found = {name: metric["value"] for name, metric in native["metrics"].items()}
    assert found["epochs_run"] == epochs
    assert found["time_to_target"] == samples["epoch_ends"][-1, 0]
    assert found["final_validation_accuracy"] == accuracy[-1]
    assert found["final_loss"] == samples["loss"][-1, 0] < samples["loss"][0, 0]
    assert found["training_time"] == samples["global_times"].sum()
    rate = TRAINED * epochs / found["training_time"]
    assert found["total_images_per_second"] == pytest.approx(rate)
    assert native["work"] == {
        "samples_per_epoch": TRAINED, "samples": TRAINED * epochs, "phases": ["training"],
    }  # fmt: skip
    assert native["notes"]["spans"]["steps_per_epoch"] == TRAINED // 32


@pytest.mark.parametrize("content", [bytes(3074), bytes([10]) + bytes(3072)])
def test_damaged_files_are_65(tmp_path, content):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(content)
    with pytest.raises(ProgramError, match=str(path)) as caught:
        cifar.read_batch(path)
    assert caught.value.code == 65


def test_missing_cifar10_is_66_and_says_what_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("CIFAR10_DIR", raising=False)
    for words in ("CIFAR10_DIR is not set", f"CIFAR10_DIR is {tmp_path}.* its cifar-10-batches-b"):
        with pytest.raises(ProgramError, match=words) as caught:
            cifar.read(0, 1)
        assert caught.value.code == 66
        monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
