"""Files of decisions and caches next to the runs: JSON with its format and a seal.

Written and read while the Snakefile is parsed, so with orjson.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from scalesweep.core.files import is_whole, read_regular, seal, write_atomic


def write_sealed(path: Path, number: int, content: Mapping[str, Any], durable: bool = True) -> None:
    """Write ``content`` with the ``number`` of its format. ``durable`` as in ``write_atomic``.

    Raises OSError, and orjson.JSONEncodeError for what JSON cannot hold (integers of over 64 bits).
    """
    # JSON without its last brace, which the seal puts behind itself.
    text = orjson.dumps({"format": number, **content}, default=list)[:-1]
    write_atomic(path, seal(text), durable)


def read_sealed(path: Path, number: int) -> dict[str, Any]:
    """What ``write_sealed`` wrote; empty if the file is not whole or of another format.

    Raises OSError or ValueError if it cannot be read.
    """
    content = read_regular(path)
    kept = orjson.loads(content) if is_whole(content, needed=True) else {}
    return kept if isinstance(kept, dict) and kept.get("format") == number else {}
