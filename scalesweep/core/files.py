"""Files: canonical JSON, digests, writing by rename, and the seal of what may be damaged."""

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

# json.dumps with arguments would make a new one for each of 100,000 runs.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: Any) -> str:
    """The one text form of a JSON value: sorted keys, no spaces, no NaN.

    Raises ValueError for NaN and infinity, which JSON cannot hold.
    """
    return _CANONICAL.encode(value)


def digest_of(value: Any, size: int = 16) -> str:
    """BLAKE2b hex digest of ``size`` bytes over the canonical JSON of ``value``."""
    return hashlib.blake2b(canonical_json(value).encode(), digest_size=size).hexdigest()


def content_digest(content: bytes) -> str:
    """BLAKE2b hex digest (16 bytes) of a file's content that is in memory already."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class NotAFileError(OSError):
    """What lies under a name is no regular file, or is longer than may be read."""


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def _open_regular(path: Path | str, most: int | None = None) -> tuple[int, int]:
    """Descriptor and size of a regular file; raises NotAFileError for anything else.

    A named pipe without a writer would block for ever, a device has no end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise NotAFileError(errno.EINVAL, "is a socket, not a file", str(path)) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
        raise NotAFileError(errno.EINVAL, f"is {kind}, not a file", str(path))
    if most is not None and status.st_size > most:
        os.close(descriptor)
        raise _too_long(path, status.st_size, most)
    return descriptor, status.st_size


def _too_long(path: Path | str, size: int, most: int) -> NotAFileError:
    said = f"has {size:,} bytes, at most {most:,} are read"
    return NotAFileError(errno.EFBIG, said, str(path))


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open for reading; raises NotAFileError for anything else, and OSError."""
    return open(_open_regular(path)[0], "rb")  # noqa: PTH123 (a descriptor)


def read_regular(path: Path | str, most: int | None = None) -> bytes:
    """Content of a regular file of at most ``most`` bytes.

    Raises NotAFileError for a directory, a named pipe, a device or a longer file, and OSError as
    ``Path.read_bytes`` does.
    """
    descriptor, size = _open_regular(path, most)
    try:
        content = os.read(descriptor, size + 1)
        if len(content) == size:
            return content
        # It has grown or shrunk meanwhile, or is longer than one call reads.
        parts, size = [content], len(content)
        while part := os.read(descriptor, 1 << 24):
            parts.append(part)
            size += len(part)
            if most is not None and size > most:
                raise _too_long(path, size, most)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """BLAKE2b hex digest (16 bytes) of a regular file's content; raises OSError."""
    digest = hashlib.blake2b(digest_size=16)
    with open_regular(path) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


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


_SEAL = b', "digest": "'


def seal(content: bytes) -> bytes:
    """``content`` with its checksum behind it.

    What is JSON without its last brace is JSON again, an object whose last key is ``digest``.
    """
    return content + _SEAL + content_digest(content + b"}").encode() + b'"}\n'


def unseal(content: bytes) -> bytes | None:
    """What ``seal`` was given; None if there is no checksum or it differs."""
    inner = content.rpartition(_SEAL)[0]
    return inner if seal(inner) == content else None


def sealed(value: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON text of an object with the checksum of all of it as its last key, ``digest``."""
    return seal(json.dumps(value, indent=indent).encode()[:-1]).decode()


def is_whole(content: bytes, needed: bool = False) -> bool:
    """Whether the content of a file is as ``sealed`` made it; unless ``needed``, it may also have
    no checksum at all."""
    return unseal(content) is not None or (_SEAL not in content and not needed)


def stamp_of(path: str) -> str | None:
    """Time and size of a file, as ``mtime in ns:bytes``; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a Path per file would double a scan's time)
    except OSError:
        return None
    return f"{status.st_mtime_ns}:{status.st_size}"


def natural_order(path: Path) -> list[list[tuple[int, str]]]:
    """Sort key of paths by their numbers: run2 before run10."""
    return [
        [
            (int(word) if "0" <= word[0] <= "9" else -1, word)
            for word in re.findall(r"[0-9]{1,18}|[^0-9]+", part)
        ]
        for part in path.parts
    ]


_MAX_JSON = 1 << 25  # bytes


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none."""
    try:
        content = json.loads(read_regular(path, _MAX_JSON))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
