"""What other processes took of the cores while a run ran, in its row of the summary: ``_load``."""

from collections.abc import Mapping
from typing import Any

LOAD = "_load"
OTHERS = "others_share"  # column of the table `runs`


def load_text(record: Mapping[str, Any]) -> str | None:
    """The share as text; None where it is not known, as of records from before it was looked at."""
    others = (record.get("load") or {}).get("others")
    return None if others is None else repr(float(others))
