"""What other processes took of the cores while a run ran, in its row of the summary: ``_load``."""

from collections.abc import Mapping, Sequence
from typing import Any

LOAD = "_load"
OTHERS = "others_share"  # column of the table `runs`
LEFT_OUT = "left_out"  # column of the table `runs`: why a finished run enters no estimate
DISTURBED = 0.1  # share of the cores from which on a run was disturbed
LEAST_LEFT = 2  # undisturbed repeats of a point, for its disturbed ones to be left out


def load_of(record: Mapping[str, Any]) -> float | None:
    """The share; None where it is not known."""
    others = (record.get("load") or {}).get("others")
    return None if others is None else float(others)


def undisturbed(others: Sequence[float | None]) -> list[int]:
    """Places of a point's repeats that enter estimates, by what others took while each ran (None:
    not known): all of them unless two that nothing disturbed remain."""
    calm = [place for place, share in enumerate(others) if not share or share <= DISTURBED]
    return calm if len(calm) >= LEAST_LEFT else list(range(len(others)))
