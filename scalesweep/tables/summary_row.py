"""The row of a run in the summary."""

from collections.abc import Mapping
from typing import Any, NamedTuple

IDENTITY = (
    "run_id",
    "benchmark",
    "version",
    "site",
    "source",
    "repeat",
    "started",
    "wall_s",
    "hosts",
    "samples",
    "bytes",
    "warnings",
)


class Row(NamedTuple):
    """What a run is, its point, and its quantities by column."""

    identity: dict[str, Any]
    point: Mapping[str, Any]
    epochs: dict[str, float]
    plain: dict[str, float]
    meanings: dict[str, dict[str, str]]
    curves: dict[str, Any]


def joined(*texts: str | None) -> str | None:
    """Warnings as one text; None without any."""
    return "; ".join(text for text in texts if text) or None
