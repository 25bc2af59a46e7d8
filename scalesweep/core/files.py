"""Files: canonical JSON, digests, writing by rename."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# json.dumps with arguments would make a new one for each of 100,000 runs.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> str:
    """The one text form of a JSON value: sorted keys, no spaces, no NaN. Raises ValueError for NaN
    and infinity, which JSON cannot hold."""
    return _CANONICAL.encode(value)


def digest_of(value: Any, size: int = 16) -> str:
    """BLAKE2b hex digest of ``size`` bytes over the canonical JSON of ``value``."""
    return hashlib.blake2b(canonical_json(value).encode(), digest_size=size).hexdigest()


def content_digest(content: bytes) -> str:
    """BLAKE2b hex digest (16 bytes) of a file's content that is in memory already."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def file_digest(path: Path) -> str:
    """BLAKE2b hex digest (16 bytes) of a file's content; raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


@contextlib.contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[Path]:
    """Write a file under a temporary name, which the body gets, that ends up as ``path``.

    Readers see the old content or the new, never a part of it; after an exception the old one
    stays. ``durable``: the new one is on disk at the end, which costs milliseconds.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        if durable:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # of a full disk the system names no file
        raise


def write_atomic(path: Path, content: str | bytes, durable: bool = True) -> None:
    """Write a file by rename (``replacing``), text as UTF-8."""
    with replacing(path, durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def stamp_of(path: str) -> str | None:
    """Time and size of a file, as ``mtime in ns:bytes``; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a Path per file would double a scan's time)
    except OSError:
        return None
    return f"{status.st_mtime_ns}:{status.st_size}"


def natural_order(path: Path) -> list[int | str]:
    """Sort key of paths by their numbers: run2 before run10."""
    words = re.split(r"([0-9]{1,18})", str(path))  # every other one is a number
    return [int(word) if place % 2 else word for place, word in enumerate(words)]


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
