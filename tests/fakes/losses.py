"""Made losses of a step, and how often a wrong one of them is named as the largest."""

from collections.abc import Sequence

import numpy as np

from scalesweep.analysis.joint import lead_of
from scalesweep.analysis.stats import SIGNIFICANT
from tests.fakes.noise import draw


def named(
    losses: Sequence[float],
    sd: float | Sequence[float],
    repeats: int,
    kind: str,
    campaigns: int,
    seed: int = 1,
    reference: float = 1.0,
) -> tuple[float, float]:
    """Shares of campaigns that call a wrong loss the largest, and that call the true one so.

    Each run has its own ``sd`` in each term (or one for each), and so much of it at the
    ``reference``. Of equal largest losses none is the largest: each is wrong.
    """
    generator = np.random.default_rng((seed, repeats, len(losses)))
    shape = (campaigns, len(losses), repeats)
    spread = np.broadcast_to(sd, len(losses))[:, None]
    here = np.array(losses, float)[:, None] + spread * draw(generator, kind, shape)
    there = reference * spread * draw(generator, kind, shape)
    truth = str(int(np.argmax(losses))) if list(losses).count(max(losses)) == 1 else ""
    wrong = right = 0
    for mine, base in zip(here, there, strict=True):
        effects = {str(k): {"here": mine[k], "base": -base[k]} for k in range(len(losses))}
        lead = lead_of(effects)
        if lead is not None and lead.p < SIGNIFICANT:
            right += lead.name == truth
            wrong += lead.name != truth
    return wrong / campaigns, right / campaigns
