"""Whether layouts fit into memory, by those that were run."""

import numpy as np

from scalesweep.analysis.prediction.layouts.rivals import NEIGHBOURS, with_scale
from scalesweep.analysis.prediction.layouts.runs import Layout, Measured


def fits_as_neighbours(known: Measured, layouts: tuple[Layout, ...]) -> list[bool | None]:
    """False where none of the nearest measured layouts fitted, else True; None where nothing ran
    out of memory.

    What failed for another reason says nothing of memory.
    """
    judged = known.where(known.ran | known.too_large)
    if not judged.too_large.any():
        return [None] * len(layouts)
    places = with_scale(judged.layouts)
    away = ((with_scale(layouts)[:, None] - places[None]) ** 2).sum(axis=2)
    closest = np.argsort(away, axis=1, kind="stable")[:, :NEIGHBOURS]
    return [bool(share < 1) for share in judged.too_large[closest].mean(axis=1)]
