"""Files: canonical JSON, digests, writing by rename, and the seal of what may be damaged."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def file_digest(path: Path) -> str:
    """BLAKE2b hex digest (16 bytes) of a file's content."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_atomic(path: Path, text: str, durable: bool = True) -> None:
    """Write a text file so that readers see the old content or the new, never a part of it.

    ``durable``: it is on disk on return, which costs milliseconds.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = str(path)  # of a full disk the system names no file
        raise


_SEAL = b', "digest": "'


def sealed(value: Mapping[str, Any], indent: int | None = None) -> str:
    """JSON text of an object with the checksum of all of it as its last key, ``digest``."""
    text = json.dumps(value, indent=indent)
    return text[:-1] + _SEAL.decode() + _end(text.encode())


def is_whole(content: bytes, needed: bool = False) -> bool:
    """Whether the content of a file is as ``sealed`` made it; unless ``needed``, it may also have
    no digest at all."""
    text, seal, rest = content.rpartition(_SEAL)
    if not seal:
        return not needed
    return rest.decode(errors="replace") == _end(text + b"}")


def _end(content: bytes) -> str:
    return content_digest(content) + '"}\n'


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None if there is none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
