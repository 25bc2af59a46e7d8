"""What other processes took of the cores while a run ran, in its row of the summary: ``_load``."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

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


def calm_rows(summary: "pd.DataFrame", rows: Iterable[int], points: Iterable[Hashable]) -> set[int]:
    """Of rows of a summary, each of a run of a point, those that enter estimates."""
    by_point: dict[Hashable, list[int]] = {}
    for row, point in zip(rows, points, strict=True):
        by_point.setdefault(point, []).append(row)
    texts = summary[LOAD].tolist() if LOAD in summary else [None] * len(summary)
    shares = [json.loads(text) if isinstance(text, str) else None for text in texts]
    return {
        every[place]
        for every in by_point.values()
        for place in undisturbed([shares[row] for row in every])
    }
