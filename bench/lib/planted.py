"""Made-up series of sessions in which a step is planted, or none, in noise such as machines make.

All values are relative to 1.0 before the step. Noise is log-normal.
"""

from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.types import Floats


@dataclass(frozen=True)
class Kind:
    """What a series is made of; shares, so that 0.02 is 2 %.

    ``within``: noise of a repeat, ``between``: of a session; ``drift``: what a slow wave adds up to
    from trough to crest; ``spikes``: share of sessions that are slower by 10 to 40 %;
    ``hiccups``: share of repeats that are slower by 10 to 100 %; ``rho``: what a session passes on
    to the next; ``shift``: step of the machine, not of the program, half-way.
    """

    name: str
    within: float = 0.02
    between: float = 0.01
    drift: float = 0.0
    spikes: float = 0.0
    hiccups: float = 0.0
    rho: float = 0.0
    shift: float = 0.0


KINDS = (
    Kind("repeats only", between=0.0),
    Kind("sessions too"),
    Kind("drift", drift=0.02),
    Kind("spikes", spikes=0.05),
    Kind("hiccups", hiccups=0.05),
    Kind("correlated", rho=0.4),
    Kind("all of it", drift=0.02, spikes=0.05, hiccups=0.03, rho=0.2),
)


def plant(
    rng: np.random.Generator,
    kind: Kind,
    sessions: int = 30,
    repeats: int = 5,
    step: float = 0.0,
    after: int = 2,
) -> list[Floats]:
    """Repeats of each session; the last ``after`` of them are slower by ``step``."""
    log = np.zeros(sessions)
    noise = rng.normal(0, kind.between, sessions)
    for place in range(sessions):
        before = log[place - 1] if place else 0.0
        log[place] = kind.rho * before + noise[place] * np.sqrt(1 - kind.rho**2)
    wave = np.sin(2 * np.pi * (np.arange(sessions) / sessions * 1.5 + rng.random()))
    log += kind.drift / 2 * wave
    spiky = rng.random(sessions) < kind.spikes
    log += spiky * np.log1p(rng.uniform(0.1, 0.4, sessions))
    log[sessions // 2 :] += np.log1p(kind.shift)
    log[sessions - after :] += np.log1p(step)
    values = rng.normal(log[:, None], kind.within, (sessions, repeats))
    slow = rng.random(values.shape) < kind.hiccups
    values += slow * np.log1p(rng.uniform(0.1, 1.0, values.shape))
    return list(np.exp(values))
