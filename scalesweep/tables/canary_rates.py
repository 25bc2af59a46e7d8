"""What a run's canary leaves in its row of the summary: ``_canary``."""

import json
from collections.abc import Mapping
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.record_check import MAX_NUMBER

CANARY = "_canary"
WHEN = ("before", "after")
WORDS = {"compute": "matrix products", "memory": "copies"}
KINDS = tuple(WORDS)


def canary_text(record: Mapping[str, Any]) -> str | None:
    """Host and rates of the slowest host of each look of a run's canary, as JSON; None without.

    ``{"before": {"compute": [host, FLOP/s], "memory": [host, bytes/s]}, "after": ...}``: a run
    waits for its slowest host. Raises UserError where the record's canary is none.
    """
    looks = record.get("canary")
    if looks is None:
        return None
    if not isinstance(looks, dict):
        raise UserError("canary is not an object")
    kept = {}
    for when in WHEN:
        look = looks.get(when) or {}
        if not isinstance(look, dict):
            raise UserError(f"canary.{when} is not an object")
        if "hosts" in look:
            kept[when] = {kind: _slowest(look, kind, when) for kind in KINDS}
    return json.dumps(kept) if kept else None


def _slowest(look: Mapping[str, Any], kind: str, when: str) -> tuple[str, float]:
    hosts, rates = look["hosts"], look.get(kind)
    if (
        not isinstance(hosts, list)
        or not isinstance(rates, list)
        or not hosts
        or len(hosts) != len(rates)
    ):
        raise UserError(f"canary.{when}.{kind} is not a list of a rate for each host")
    for rate in rates:
        if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate < MAX_NUMBER:
            raise UserError(f"canary.{when}.{kind} holds what is no rate")
    rate, host = min((float(rate), str(host)) for host, rate in zip(hosts, rates, strict=True))
    return host, rate
