"""Records read fast, in front: what ``scalesweep.core.record`` does, with orjson.

The standard library's json keeps the last word: whatever orjson refuses or reads otherwise
(numbers beyond 64 bits, encodings) fails here on the record's digest and is then read with json.
"""

from pathlib import Path
from typing import Any

import orjson

from scalesweep.core import record
from scalesweep.core.files import content_digest, digest_of
from scalesweep.core.record_check import BadRecordError


def read_record(path: Path) -> dict[str, Any]:
    """As ``core.record.read_record``."""
    content = parse_record(record.record_bytes(path), path.parent.name)
    record.check_samples(path.parent, content)
    return content


def parse_record(content: bytes, run_id: str) -> dict[str, Any]:
    """As ``core.record.parse_record``: the checked record in the content of record.json."""
    try:
        return record.parse_record(content, run_id, orjson.loads, _has_digest)
    except BadRecordError:
        return record.parse_record(content, run_id)


def _has_digest(value: Any, digest: Any) -> bool:
    """Whether ``digest`` is that of a value: of orjson's text, which is canonical for most values,
    or of what json writes (1e-05)."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return bool(digest == content_digest(text)) or bool(digest == digest_of(value))
