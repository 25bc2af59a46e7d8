"""What a run's canary leaves in its row of the summary: ``_canary``."""

import json
from collections.abc import Mapping
from typing import Any

CANARY = "_canary"
WHEN = ("before", "after")
WORDS = {"compute": "matrix products", "memory": "copies"}
KINDS = tuple(WORDS)


def canary_text(record: Mapping[str, Any]) -> str | None:
    """Host and rates of the slowest host of each look of a run's canary, as JSON; None without.

    ``{"before": {"compute": [host, FLOP/s], "memory": [host, bytes/s]}, "after": ...}``: a run
    waits for its slowest host.
    """
    looks = record.get("canary") or {}
    kept = {
        when: {kind: min(zip(looks[when][kind], looks[when]["hosts"], strict=True))[::-1]
               for kind in KINDS}
        for when in WHEN
        if "hosts" in (looks.get(when) or {})
    }  # fmt: skip
    return json.dumps(kept) if kept else None
