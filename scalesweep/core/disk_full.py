"""A disk that is full, or a quota that is used up: how to tell it from other failures.

Standard library only, for the launcher.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT)
# A failed program's own words; it may have written elsewhere than into its folder.
_WORDS = tuple(os.strerror(number) for number in _FULL)
_PROBE_BYTES = 1 << 16


def text_of(error: OSError, folder: Path) -> str | None:
    """What has happened, in a line, if an error is that of a full disk or quota; else None."""
    return f"{os.strerror(error.errno).lower()} in {folder}" if error.errno in _FULL else None


def why_failed(work: Path, lines: Iterable[str]) -> str | None:
    """Why a program failed that has left ``lines``, if a full disk is the reason; else None.

    Its output may be lost on the same disk, so a small file is tried in its folder ``work``.
    """
    import tempfile  # milliseconds, which runs that end well are spared

    try:
        with tempfile.TemporaryFile(dir=work) as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if full := text_of(error, work):
            return full
    return words_of(lines)


def words_of(lines: Iterable[str]) -> str | None:
    """The first line that says of a disk that it is full; None if none does."""
    return next((line for line in lines if any(word in line for word in _WORDS)), None)
