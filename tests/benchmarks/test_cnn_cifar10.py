"""The real CIFAR-10: both forms of its files, damaged and hostile ones, and the pipeline."""

import io
import os
import pickle

import numpy as np
import pytest

from cnn_training import cifar
from harness.program import ProgramError
from tests.benchmarks.cnn_programs import CIFAR10, steps
from tests.benchmarks.programs import Later

pytestmark = pytest.mark.slow
images = Later("cnn_training.images")


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
