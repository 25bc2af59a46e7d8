"""Arrays of an archive in memory are those that numpy.load gives."""

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.arrays import Arrays

ARRAYS: dict[str, Any] = {
    "times": np.random.default_rng(1).random((5, 3)), "counts": np.arange(6).reshape(2, 3),
    "single": np.float32(1.5), "none": np.empty((0, 4)), "flags": np.array([True, False]),
    "by_column": np.asfortranarray(np.random.default_rng(2).random((3, 4))),
    "big_endian": np.arange(3.0).astype(">f8"), "words": np.array(["a", "bc"]),
}  # fmt: skip


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_they_are_what_numpy_loads(save: Any) -> None:
    file = io.BytesIO()
    save(file, **ARRAYS)
    found = Arrays(file.getvalue())
    assert list(found) == list(ARRAYS) and "other" not in found and len(found) == len(ARRAYS)
    with np.load(io.BytesIO(file.getvalue())) as expected:
        for name in ARRAYS:
            assert found[name].dtype == expected[name].dtype
            np.testing.assert_array_equal(found[name], expected[name])
    with pytest.raises(KeyError):
        found["other"]


def test_a_member_that_differs_from_its_checksum_is_refused() -> None:
    file = io.BytesIO()
    np.savez(file, times=np.ones(8))
    content = file.getvalue().replace(np.ones(1).tobytes(), np.full(1, 2.0).tobytes(), 1)
    with pytest.raises(zipfile.BadZipFile):
        Arrays(content)["times"]


def test_objects_are_refused() -> None:
    file = io.BytesIO()
    np.savez(file, things=np.array([{}], object))
    with pytest.raises(ValueError, match="Object arrays"):
        Arrays(file.getvalue())["things"]
