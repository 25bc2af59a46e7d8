"""The real CIFAR-10 in its binary version: files that are there, missing, damaged; the pipeline."""

import numpy as np
import pytest

from cnn_training import cifar
from harness.program import ProgramError
from tests.benchmarks.cnn_programs import CIFAR10, steps
from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
images = Later("cnn_training.images")

COUNTS = (7, 6, 5, 4, 8)  # images in each file; really 10,000


@pytest.fixture
def published():
    """Images [30, 3, 32, 32] and labels [30] of a small CIFAR-10."""
    rng = np.random.default_rng(9)
    total = sum(COUNTS)
    return rng.integers(0, 256, (total, 3, 32, 32), np.uint8), rng.integers(0, 10, total)


def write(folder, published):
    """Write it as its authors do."""
    folder.mkdir(parents=True)
    rows = np.column_stack([published[1].astype(np.uint8), published[0].reshape(sum(COUNTS), -1)])
    for number, part in enumerate(np.split(rows, np.cumsum(COUNTS)[:-1]), 1):
        (folder / f"data_batch_{number}.bin").write_bytes(part.tobytes())


@pytest.mark.parametrize("parent", [True, False])
def test_reading_cifar10(tmp_path, monkeypatch, published, parent):
    folder = tmp_path / "cifar-10-batches-bin"
    write(folder, published)
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


@pytest.mark.parametrize("content", [b"", bytes(3074), bytes([10]) + bytes(3072)])
def test_damaged_files_are_65(tmp_path, content):
    path = tmp_path / "data_batch_1.bin"
    path.write_bytes(content)
    with pytest.raises(ProgramError, match=str(path)) as caught:
        cifar.read_batch(path)
    assert caught.value.code == 65


def test_missing_cifar10_is_66_and_says_what_was_looked_for(tmp_path, monkeypatch, published):
    monkeypatch.delenv("CIFAR10_DIR", raising=False)
    for words in ("CIFAR10_DIR is not set", f"CIFAR10_DIR is {tmp_path}.* its cifar-10-batches-b"):
        with pytest.raises(ProgramError, match=words) as caught:
            cifar.read(0, 1)
        assert caught.value.code == 66
        monkeypatch.setenv("CIFAR10_DIR", str(tmp_path))
    write(tmp_path / "cifar-10-batches-bin", published)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_5.bin").unlink()
    with pytest.raises(ProgramError, match=str(tmp_path)):
        cifar.read(0, 1)
