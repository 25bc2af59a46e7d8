"""Arrays of an .npz file that is in memory: what numpy.load gives, for 10,000 files of a few kB.

numpy.load parses the header of every array as Python and inflates it in pieces; here a header
that was seen before is not parsed again, and a member is inflated at once.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SUFFIX = ".npy"
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and extra field
_MAGIC = b"\x93NUMPY\x01\x00"
_ENCRYPTED = 1


class Arrays(Mapping[str, NDArray[Any]]):
    """Arrays by name, read when they are asked for.

    Raises what numpy.load raises for a file that holds none (``core.npy.NOT_ARRAYS``), for
    objects too, and zipfile.BadZipFile for a member whose checksum differs.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._archive = zipfile.ZipFile(io.BytesIO(content))
        self._members = {
            member.filename.removesuffix(_SUFFIX): member
            for member in self._archive.infolist()
            if member.filename.endswith(_SUFFIX)
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The array of this name; read-only."""
        content = self._read(self._members[name])
        end = 10 + int.from_bytes(content[8:10], "little")
        if content[:8] != _MAGIC or len(content) < end:
            return _read(content)
        kind, shape = _header(content[:end])
        if kind is None:
            return _read(content)
        return np.frombuffer(content, kind, math.prod(shape), end).reshape(shape)

    def __contains__(self, name: object) -> bool:
        """Whether there is one of this name; nothing is read."""
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        """Their names, in the order of the file."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)

    def _read(self, member: zipfile.ZipInfo) -> bytes:
        start = member.header_offset
        methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        head = self._content[start : start + _LOCAL.size]
        if (
            member.flag_bits & _ENCRYPTED
            or member.compress_type not in methods
            or len(head) < _LOCAL.size
        ):
            return self._archive.read(member)
        signature, name, extra = _LOCAL.unpack(head)
        begin = start + _LOCAL.size + name + extra
        content = self._content[begin : begin + member.compress_size]
        if member.compress_type == zipfile.ZIP_DEFLATED:
            # No more than the directory says: zeros inflate to a thousand times their size.
            content = zlib.decompressobj(-15).decompress(content, max(1, member.file_size))
        whole = signature == b"PK\x03\x04" and len(content) == member.file_size
        if not whole or zlib.crc32(content) != member.CRC:
            raise zipfile.BadZipFile(f"{member.filename} is not whole")
        return content


def _read(content: bytes) -> NDArray[Any]:
    read: Callable[..., NDArray[Any]] = np.lib.format.read_array
    try:
        return read(io.BytesIO(content), allow_pickle=False)
    except tokenize.TokenError as error:  # a header that is cut
        raise ValueError(str(error)) from None


@lru_cache(maxsize=1024)
def _header(content: bytes) -> tuple[np.dtype[Any] | None, tuple[int, ...]]:
    """Type and shape of an array of plain numbers in C order; no type where it is another."""
    file = io.BytesIO(content)
    np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
    try:
        shape, fortran, kind = np.lib.format.read_array_header_1_0(file)  # type: ignore[no-untyped-call]
    except tokenize.TokenError as error:
        raise ValueError(str(error)) from None
    plain = kind.kind in "fiub" and not fortran and all(size >= 0 for size in shape)
    return (kind if plain else None), shape
