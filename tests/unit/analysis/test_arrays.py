"""Arrays of an archive in memory are those that numpy.load gives."""

import io
import zipfile
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.arrays import Arrays, _directory

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
    # Who has compared the digest of the whole file need not compare this one.
    assert Arrays(content, verified=True)["times"][0] == 2.0


def archive(name: str = "times.npy", comment: bytes = b"", extra: bytes = b"") -> bytes:
    """An archive of one array that is not as NumPy writes it."""
    file, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.ones(8))
    with zipfile.ZipFile(file, "w") as written:
        written.comment = comment
        member = zipfile.ZipInfo(name)
        member.extra = extra
        member.comment = comment
        written.writestr(member, array.getvalue())
    return file.getvalue()


UNUSUAL = {
    "comments": archive(comment=b"of mine"),
    "an extra field": archive(extra=b"\x99\x99\x02\x00ab"),
    "no ASCII": archive("größe.npy"),
    "something in front": b"#!/bin/sh" + archive(),
    "something behind": archive() + b"PK",
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_an_unusual_archive_is_left_to_zipfile(name: str) -> None:
    assert _directory(archive()) is not None and _directory(UNUSUAL[name]) is None
    try:
        members = zipfile.ZipFile(io.BytesIO(UNUSUAL[name])).namelist()
    except zipfile.BadZipFile:
        with pytest.raises(zipfile.BadZipFile):
            Arrays(UNUSUAL[name])
        return
    found = Arrays(UNUSUAL[name])
    assert [f"{each}.npy" for each in found] == members and found[next(iter(found))].sum() == 8


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_directory_is_read_as_zipfile_reads_it(save: Any) -> None:
    file = io.BytesIO()
    save(file, **ARRAYS)
    found = _directory(file.getvalue())
    assert found is not None
    members = zipfile.ZipFile(file).infolist()
    assert [member._asdict() for member in found] == [
        {name: getattr(member, name) for name in found[0]._fields} for member in members
    ]
    for cut in range(len(file.getvalue())):
        assert _directory(file.getvalue()[:cut]) is None


def test_objects_are_refused() -> None:
    file = io.BytesIO()
    np.savez(file, things=np.array([{}], object))
    with pytest.raises(ValueError, match="Object arrays"):
        Arrays(file.getvalue())["things"]
