"""Arrays of a run as an .npz file. A launcher starts without NumPy."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalesweep.core.files import replacing

if TYPE_CHECKING:
    from numpy.typing import NDArray

# What files that are not of arrays raise: zipfile, and NumPy.
NOT_ARRAYS = (
    *(ValueError, OSError, EOFError, RuntimeError, MemoryError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error),
)
# What NumPy, json and formatting raise besides for content of the wrong kind.
NO_USE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError)


def write_npz(path: Path, arrays: Mapping[str, "NDArray[Any]"]) -> None:
    """Write float64 arrays, uncompressed, by rename; the same content gives the same file."""
    import numpy as np

    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write = np.lib.format.write_array
                write(member, np.ascontiguousarray(values, "<f8"))  # type: ignore[no-untyped-call]
