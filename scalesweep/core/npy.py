"""Arrays of float64 as an .npz file, written without NumPy (format: numpy.lib.format).

Standard library only: the launcher writes them on compute nodes.
"""

import array
import ast
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from scalesweep.core.files import replacing

# What files that are not of arrays raise: ``npy_floats``, zipfile, and NumPy.
NOT_ARRAYS = (
    *(ValueError, OSError, EOFError, RuntimeError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error),
)
# What NumPy, json and formatting raise besides for content of the wrong kind.
NO_USE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)
# Bytes of all arrays of an archive together, as its directory says before any is inflated.
MAX_ARCHIVE = 1 << 30
MAX_MEMBERS = 2000
# The same content gives the same file, whenever it is written.
_DATE = (1980, 1, 1, 0, 0, 0)


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise ValueError unless the members of an archive, of so many bytes, are few and small enough
    to be read."""
    if len(sizes) > MAX_MEMBERS:
        raise ValueError(f"it holds {len(sizes):,} arrays, at most {MAX_MEMBERS:,} are read")
    if sum(sizes) > MAX_ARCHIVE:
        raise ValueError(f"it holds {sum(sizes):,} bytes, at most {MAX_ARCHIVE:,} are read")


class Array(NamedTuple):
    """Numbers of an array in C order, and its shape."""

    shape: tuple[int, ...]
    values: Sequence[float]


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write float64 arrays, uncompressed, by rename."""
    with (
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive,
    ):
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _DATE), _npy(content))


def _npy(content: Array) -> bytes:
    if prod(content.shape) != len(content.values):
        raise ValueError(f"{len(content.values)} values do not make an array of {content.shape}")
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {content.shape!r}, }}"
    # Magic, version and length take 10 bytes; the data begin at a multiple of 64.
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = array.array("d", content.values)
    if sys.byteorder == "big":
        values.byteswap()
    length = len(header).to_bytes(2, "little")
    return b"\x93NUMPY\x01\x00" + length + header.encode("latin1") + values.tobytes()


def npy_floats(content: bytes) -> tuple[str, "array.array[float]"]:
    """Type and values of a .npy file (format: numpy.lib.format), read without NumPy.

    Raises an error of ``NOT_ARRAYS`` for what is none.
    """
    if content[:6] != b"\x93NUMPY" or len(content) < 8:
        raise ValueError("not a .npy member")
    width = 2 if content[6] == 1 else 4
    length = int.from_bytes(content[8 : 8 + width], "little")
    start = 8 + width
    try:
        kind = ast.literal_eval(content[start : start + length].decode("latin1"))["descr"]
    except (LookupError, TypeError):
        raise ValueError("not the header of a .npy member") from None
    values = array.array("d")
    if kind == "<f8":
        values.frombytes(content[start + length :])
    return kind, values
