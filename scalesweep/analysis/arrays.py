"""Arrays of an .npz file that is in memory: what numpy.load gives, for 10,000 files of a few kB.

numpy.load parses the header of every array as Python and inflates it in pieces; here a header
that was seen before is not parsed again, a member is inflated at once, and the directory of a
plain archive is read without an object for each of its fields.
"""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scalesweep.core.npy import check_sizes

_SUFFIX = ".npy"
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and extra field
_MAGIC = b"\x93NUMPY\x01\x00"
_ENCRYPTED = 1
# The end of an archive: signature, disks, entries (here, all), size and start of its directory,
# length of the comment behind.
_END = struct.Struct("<4s4H2LH")
# Of the directory: signature, versions, flags, method, time and date, checksum, compressed size,
# size, lengths of name, extra field and comment, disk and attributes, start of the member.
_ENTRY = struct.Struct("<4s4x2H4x3L3H8xL")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP64 = 0xFFFFFFFF


class _Member(NamedTuple):
    """What zipfile.ZipInfo says of a member, under the same names."""

    filename: str
    flag_bits: int
    compress_type: int
    CRC: int
    compress_size: int
    file_size: int
    header_offset: int


class Arrays(Mapping[str, NDArray[Any]]):
    """Arrays by name, read when they are asked for.

    Raises what numpy.load raises for a file that holds none (``core.npy.NOT_ARRAYS``), for
    objects too, zipfile.BadZipFile for a member whose checksum differs, and ValueError where they
    are too many or too large to be read (``core.npy.check_sizes``). ``verified``: the
    content has the digest that it was written with, and the members' checksums are not computed.
    """

    def __init__(self, content: bytes, verified: bool = False) -> None:
        self._content = content
        self._verified = verified
        members = _directory(content) or self._archive.infolist()
        check_sizes([member.file_size for member in members])
        self._members = {
            member.filename.removesuffix(_SUFFIX): member
            for member in members
            if member.filename.endswith(_SUFFIX)
        }

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(io.BytesIO(self._content))

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

    def _read(self, member: _Member | zipfile.ZipInfo) -> bytes:
        start = member.header_offset
        head = self._content[start : start + _LOCAL.size]
        if (
            member.flag_bits & _ENCRYPTED
            or member.compress_type not in _METHODS
            or len(head) < _LOCAL.size
        ):
            return self._archive.read(member.filename)
        signature, name, extra = _LOCAL.unpack(head)
        begin = start + _LOCAL.size + name + extra
        # A copy: in the archive arrays are not aligned, and NumPy would add them up in other parts.
        content = self._content[begin : begin + member.compress_size]
        if member.compress_type == zipfile.ZIP_DEFLATED:
            # No more than the directory says: zeros inflate to a thousand times their size.
            content = zlib.decompressobj(-15).decompress(content, max(1, member.file_size))
        whole = signature == b"PK\x03\x04" and len(content) == member.file_size
        if not whole or not (self._verified or zlib.crc32(content) == member.CRC):
            raise zipfile.BadZipFile(f"{member.filename} is not whole")
        return content


def _directory(content: bytes) -> list[_Member] | None:
    """Members of an archive as NumPy writes it; None for any other, which zipfile is to read.

    Such an archive begins with its first member and ends with its directory, has no comments,
    and names in ASCII; its members are not encrypted and smaller than 4 GiB.
    """
    end = len(content) - _END.size
    if end < 0:
        return None
    signature, disk, first, here, count, size, at, comment = _END.unpack_from(content, end)
    if signature != b"PK\x05\x06" or disk or first or here != count or comment or at + size != end:
        return None
    members = []
    for _ in range(count):
        if at + _ENTRY.size > end:
            return None
        entry = _ENTRY.unpack_from(content, at)
        signature, flags, method, crc, packed, whole, length, extra, comment, start = entry
        at += _ENTRY.size + length
        name = content[at - length : at]
        if (
            (signature != b"PK\x01\x02" or flags or method not in _METHODS or extra or comment)
            or (_ZIP64 in (packed, whole, start) or at > end)
            or (not name.isascii() or b"\0" in name)
        ):
            return None
        members.append(_Member(name.decode(), flags, method, crc, packed, whole, start))
    return members if at == end else None


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
