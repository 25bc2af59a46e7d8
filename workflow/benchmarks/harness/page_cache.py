"""How much of some files the page cache holds, and asking the kernel to forget them."""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def resident_bytes(path: str) -> tuple[int, int]:
    """Return (bytes in the page cache, size) of a file, in whole pages but for the last.

    Maps the file without touching it and asks mincore. Raises OSError when that is not possible,
    PermissionError when the kernel would not tell: it says "resident" for every page of a file that
    the caller neither owns nor may write.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        if status.st_size == 0:
            return 0, 0
        if status.st_uid != os.geteuid() and not os.access(path, os.W_OK):
            raise PermissionError(f"only the owner of {path} may read its residency")
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), np.uint8)
    pages = np.zeros(-(-mapped.size // mmap.PAGESIZE), np.uint8)
    if _libc.mincore(mapped.ctypes.data, mapped.size, pages.ctypes.data) != 0:
        raise OSError(ctypes.get_errno(), f"mincore of {path}")
    return min(mapped.size, int((pages & 1).sum()) * mmap.PAGESIZE), mapped.size


def resident_fraction(paths: Iterable[str]) -> float | None:
    """Return the share of the bytes of these files in the page cache, or None when unknown."""
    resident = total = 0
    try:
        for path in paths:
            inside, size = resident_bytes(path)
            resident, total = resident + inside, total + size
    except OSError:
        return None
    return resident / total if total else None


def drop(paths: Iterable[str]) -> None:
    """Ask the kernel to forget the pages of these files.

    Pages that were not yet written to disk stay, so each file is flushed first. A page another
    process is using or has mapped stays as well: see `resident_fraction` for what was achieved.
    """
    for path in paths:
        with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def most_kept(shares: list[float | None]) -> float | None:
    """Return the largest share that a rank's files kept; None if one is unknown."""
    known = [share for share in shares if share is not None]
    return max(known) if known and len(known) == len(shares) else None


def of_cold_reads(about_ranks: list[float | None]) -> dict[str, Any]:
    """Return a record's note on reads that were to be cold, from what each rank's files kept.

    `worked` is None when no rank could verify it, else whether at most 1 % stayed on every rank.
    """
    known = [fraction for fraction in about_ranks if fraction is not None]
    verified = len(known) == len(about_ranks)
    return {
        "dropped": True,
        "resident_after": float(np.mean(known)) if known else None,
        "resident_after_max": max(known) if known else None,
        "verified": verified,
        "worked": max(known) <= 0.01 if verified and known else None,
    }
