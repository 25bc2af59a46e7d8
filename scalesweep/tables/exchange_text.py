"""What a run's exchange leaves in its row of the summary: ``_exchange``, ``_exchanged_by``."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from scalesweep.analysis.exchange import Exchange
from scalesweep.core.errors import UserError
from scalesweep.core.record_check import MAX_NUMBER

EXCHANGE = "_exchange"
EXCHANGED_BY = "_exchanged_by"
_OLDER = "fusion_bytes"  # what bucket_bytes was called
MAX_TENSORS = 100_000


def exchange_text(record: Mapping[str, Any]) -> str | None:
    """``Exchange`` of a run as JSON; None where the record says nothing of it.

    Raises UserError where notes.exchange is none.
    """
    notes = record.get("notes")
    exchange = notes.get("exchange") if isinstance(notes, dict) else None
    if exchange is None or (isinstance(exchange, dict) and exchange.get("tensor_bytes") is None):
        return None
    if not isinstance(exchange, dict):
        raise UserError("notes.exchange is no object")
    sent = exchange.get("messages")
    known = Exchange(
        by=str(exchange.get("by"))[:40],
        tensor_bytes=_sizes(exchange["tensor_bytes"], "tensor_bytes"),
        bucket_bytes=_setting(exchange.get("bucket_bytes")),
        cycle_s=_setting(exchange.get("cycle_s")),
        first_bucket_bytes=_setting(exchange.get("first_bucket_bytes")),
        sent=None if not sent else _sizes(sent, "messages"),
    )
    return json.dumps(asdict(known))


def exchanged_by(record: Mapping[str, Any]) -> str | None:
    """What carries the messages of a run: ``torch.distributed over gloo``; None where the record
    does not say.

    Records of before ``library`` name what puts tensors into messages (``by``), which is the same
    of Horovod.
    """
    notes = record.get("notes")
    exchange = notes.get("exchange") if isinstance(notes, dict) else None
    if not isinstance(exchange, dict):
        return None
    words = (exchange.get("library") or exchange.get("by"), exchange.get("backend"))
    return " over ".join(str(word)[:40] for word in words) if all(words) else None


def _sizes(said: Any, key: str) -> list[int]:
    if not isinstance(said, list) or not 0 < len(said) <= MAX_TENSORS:
        raise UserError(f"notes.exchange.{key} is not a list of 1 to {MAX_TENSORS:,} sizes")
    for size in said:
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < MAX_NUMBER:
            raise UserError(f"notes.exchange.{key}: {str(size)[:40]!r} is no size")
    return said


def exchange_of(text: str) -> Exchange:
    """What ``exchange_text`` has written, in earlier summaries too."""
    content = json.loads(text)
    if _OLDER in content:
        content["bucket_bytes"] = content.pop(_OLDER)
    return Exchange(**content)


def _setting(value: Any) -> float | None:
    """A setting that is a number; None where it is not known."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if good and 0 <= value < MAX_NUMBER else None
