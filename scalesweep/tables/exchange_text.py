"""What a run's exchange leaves in its row of the summary: ``_exchange``, ``_exchanged_by``."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from scalesweep.analysis.exchange import Exchange

EXCHANGE = "_exchange"
EXCHANGED_BY = "_exchanged_by"


def exchange_text(record: Mapping[str, Any]) -> str | None:
    """``Exchange`` of a run as JSON; None where the record does not say its tensors."""
    said = (record.get("notes") or {}).get("exchange") or {}
    if said.get("tensor_bytes") is None:
        return None
    known = Exchange(
        by=str(said.get("by")),
        tensor_bytes=said["tensor_bytes"],
        bucket_bytes=said.get("bucket_bytes"),
        cycle_s=said.get("cycle_s"),
        first_bucket_bytes=said.get("first_bucket_bytes"),
        sent=said.get("messages") or None,
    )
    return json.dumps(asdict(known))


def exchanged_by(record: Mapping[str, Any]) -> str | None:
    """What carries the messages of a run: ``torch.distributed over gloo``; None where the record
    does not say."""
    said = (record.get("notes") or {}).get("exchange") or {}
    words = (said.get("library") or said.get("by"), said.get("backend"))
    return " over ".join(map(str, words)) if all(words) else None


def exchange_of(text: str) -> Exchange:
    """What ``exchange_text`` has written."""
    return Exchange(**json.loads(text))
