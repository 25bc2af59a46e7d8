"""Many tests at once: p values corrected for their number."""

from collections.abc import Mapping, Sequence

import numpy as np

from scalesweep.analysis.stats import SIGNIFICANT

# Of the 5 % of experiments that may have a false clear sentence, the share of each part.
VERDICTS, STEP, OTHERS = "verdicts", "step", "others"
LEVELS: Mapping[str, float] = {VERDICTS: 0.02, STEP: 0.02, OTHERS: 0.01}


def holm_p(values: Sequence[float]) -> list[float]:
    """p values corrected after Holm, in the order given: those below a level are significant at
    it together (``holm_cut``)."""
    p = np.asarray(values, np.float64)
    order = np.argsort(p)
    result = np.empty(p.size)
    result[order] = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return [min(1.0, float(value)) for value in result]


def holm_cut(values: Sequence[float], level: float = SIGNIFICANT) -> float:
    """Up to which p value each of these tests is significant, so that of all of them any false one
    is in at most ``level`` of cases, however they depend on each other (Holm, Scandinavian Journal
    of Statistics 6, 1979)."""
    p = np.sort(np.asarray(values, np.float64))
    bounds = level / np.arange(p.size, 0, -1)
    failed = np.flatnonzero(p > bounds)
    return float(bounds[failed[0]]) if failed.size else level
