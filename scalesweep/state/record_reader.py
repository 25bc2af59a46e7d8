"""Records read fast, in front: what ``scalesweep.core.record`` does, with orjson.

The standard library's json keeps the last word: whatever orjson refuses or reads otherwise
(numbers beyond 64 bits, encodings) fails here on the record's digest and is then read with json.
"""

import hashlib
from pathlib import Path
from typing import Any

from scalesweep.core import record
from scalesweep.core.files import digest_of
from scalesweep.core.record import BadRecordError


def read_record(path: Path) -> dict[str, Any]:
    """As ``core.record.read_record``: a whole record of the schema of today, with its samples."""
    content = parse_record(record.record_bytes(path), path.parent.name)
    record.check_samples(path.parent, content)
    return content


def parse_record(content: bytes, run_id: str) -> dict[str, Any]:
    """As ``core.record.parse_record``: the checked record in the content of record.json."""
    import orjson  # takes longer than a parse that finds all in the index of runs

    try:
        return record.parse_record(content, run_id, orjson.loads, _has_digest)
    except BadRecordError:
        return record.parse_record(content, run_id)


def _has_digest(value: Any, digest: Any) -> bool:
    """Whether ``digest`` is that of a value.

    orjson writes most values as canonical JSON has them, in a tenth of the time; some floats
    (1e-05) it writes otherwise. If its text has the digest then that text is the canonical JSON
    of what was written, and since both parse it to the same, so is ``value``.
    """
    import orjson

    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = b""  # an integer beyond 64 bits
    same: bool = digest == hashlib.blake2b(text, digest_size=16).hexdigest()
    return same or bool(digest == digest_of(value))
