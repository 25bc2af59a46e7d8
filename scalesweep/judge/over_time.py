"""Whether a point became slower or faster over its sessions: its newest level against a baseline.

The sessions are cut into levels (PELT: Killick et al. 2012, J. Am. Stat. Assoc. 107, 1590), of at
least two sessions each. The newest is compared with the last stable one before it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from scalesweep.analysis.types import Floats
from scalesweep.core.formatting import counted, percent
from scalesweep.judge.change import CHANGED, INCONCLUSIVE, NO_CHANGE, TOO_EARLY, Change, student

STABLE = 6  # sessions of a level that a newer one is compared with
NEWEST = 2  # sessions of the newest level, at least
WINDOW = 24  # newest sessions of a baseline that count
TRIMMED = 0.2  # share of a session's repeats left out at either end
# A cut has to save so many times the variance, times the logarithm of the number of sessions.
PENALTY = 5.0
# What is asked each evening is asked many times: p values are multiplied by so many looks.
LOOKS = (60.0, 200.0)
LOOKS_A_SESSION = 2.0
CLEAR = 8.0  # standard deviations of a session: a smaller step takes a third session
_FAR = 4.0  # robust standard deviations: sessions farther off are drawn in before levels are cut
MOST_R = 0.9
ALONE = "the newest session alone differs"
_CYCLES = 3


@dataclass(frozen=True)
class Levels:
    """The sessions of a point on logarithms.

    ``centres``: trimmed mean of each session's repeats; ``levels``: first session, the one after
    the last, and mean; ``noise``: standard deviation of a session around its level; ``r``:
    autocorrelation of neighbours; ``spikes``: places of single sessions far off their level.
    """

    centres: Floats
    levels: Sequence[tuple[int, int, float]]
    noise: float
    r: float
    spikes: Sequence[int]

    @property
    def df(self) -> float:
        """Degrees of freedom of the noise (Bayley and Hammersley 1946)."""
        return (len(self.centres) - len(self.levels)) * (1 - self.r**2) / (1 + self.r**2)

    def worth(self, n: float) -> float:
        """How many independent sessions so many neighbouring ones are worth."""
        return n * (1 - self.r) / (1 + self.r)


def trimmed_means(rows: pd.DataFrame, by: Sequence[str]) -> "pd.Series[float]":
    """The mean logarithm of each group of the column ``value``, without its ends: what is taken as
    the value of a session."""
    rows = rows.sort_values("value")
    grouped = rows.groupby(list(by), observed=True)
    size, rank = grouped["value"].transform("size"), grouped.cumcount()
    cut = (TRIMMED * size).astype(int)
    logs = np.log(rows["value"].where(rows["value"] > 0))[(rank >= cut) & (rank < size - cut)]
    means: pd.Series[float] = logs.groupby(
        [rows.loc[logs.index, name] for name in by], observed=True
    ).mean()
    return means


def levels_of(centres: Floats) -> Levels:
    """The levels of sessions' means on logarithms, oldest first."""
    cuts, means = [(0, len(centres))], np.full(len(centres), np.median(centres))
    noise, r = _scatter(np.diff(centres)) / math.sqrt(2), 0.0
    for _ in range(_CYCLES):
        if len(centres) < 2 * NEWEST or noise <= 0:
            break
        cuts = _cut(centres, noise, r)
        means = np.concatenate([np.full(end - at, _middle(centres[at:end])) for at, end in cuts])
        rest = centres - means
        noise, r = _scatter(rest, len(cuts)), _neighbours(rest, cuts)
    rest = centres - means
    spikes = [n for n, off in enumerate(np.abs(rest) > _FAR * noise) if off and noise > 0]
    return Levels(centres, [(at, end, float(means[at])) for at, end in cuts], noise, r, spikes)


def _neighbours(rest: Floats, cuts: Sequence[tuple[int, int]]) -> float:
    """Autocorrelation of neighbours, corrected for the mean that was taken off: about
    (1 + 3 r) / n (Kendall 1954)."""
    limit = _FAR * _scatter(rest)
    rest = np.clip(rest, -limit, limit)
    pairs = [rest[at : end - 1] @ rest[at + 1 : end] for at, end in cuts if end - at > NEWEST]
    total = float((rest**2).sum())
    if not pairs or not total:
        return 0.0
    r = float(sum(pairs)) / total
    return float(np.clip(r + (1 + 3 * max(r, 0.0)) / len(rest), 0.0, MOST_R))


def _middle(values: Floats) -> float:
    """Mean without what lies far off."""
    middle = float(np.median(values))
    far = _FAR * _scatter(values - middle)
    return float(np.clip(values, middle - far, middle + far).mean()) if far else middle


def _scatter(values: Floats, used: int = 0) -> float:
    """Standard deviation around 0; values far off count as less."""
    if not values.size:
        return 0.0
    robust = 1.4826 * float(np.median(np.abs(values)))
    limited = np.clip(values, -_FAR * robust, _FAR * robust) if robust else values
    return math.sqrt(float((limited**2).sum()) / max(values.size - used, 1))


def _cut(centres: Floats, noise: float, r: float) -> list[tuple[int, int]]:
    """First session of each level and the one after its last."""
    import ruptures

    # A single session is never a step: it is drawn in to the median of the five around it.
    padded = np.pad(centres, 2, mode="reflect")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    signal = around + np.clip(centres - around, -2 * noise, 2 * noise)
    penalty = PENALTY * noise**2 * (1 + r) / (1 - r) * math.log(len(centres))
    search = ruptures.KernelCPD(kernel="linear", min_size=NEWEST, jump=1).fit(signal)
    ends = search.predict(pen=penalty)
    ends = [int(end) for end in ends]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def judge(
    read: Levels, better: str, margin: float, baseline: Sequence[int] | None = None
) -> Change:
    """The verdict on the newest level against the last stable one, or against named sessions.

    ``better``: ``higher`` or ``lower``; ``margin``: the relative change that matters. Without a
    newer level the newest sessions are held against those before.
    """
    base, new = _sides(read, baseline)
    if isinstance(base, str):
        return Change(TOO_EARLY if not new else INCONCLUSIVE, base, new=new)
    if not read.noise:
        return Change(
            INCONCLUSIVE, "sessions are identical: no scatter to judge by", base=base, new=new
        )
    step = _middle(read.centres[new]) - _middle(read.centres[base])
    sizes = [max(read.worth(len(side)), 0.5) for side in (base, new)]
    # The newest level's own scatter counts if it has enough sessions to tell.
    own = float(read.centres[new].std(ddof=1)) if len(new) >= STABLE else 0.0
    noise = max(read.noise, own)
    error = noise * math.sqrt(sum(1 / size for size in sizes))
    looks = min(max(LOOKS_A_SESSION * len(read.centres), LOOKS[0]), LOOKS[1])
    df = max(read.df, 1.0)
    change = replace(student(step, error, df, better, margin, looks), base=base, new=new)
    few = len(new) < NEWEST or (len(new) == NEWEST and abs(step) < CLEAR * noise)
    if change.verdict in CHANGED and few:
        why = f"only {counted(len(new), 'session')} so far"
        change = replace(change, verdict=INCONCLUSIVE, reason=why)
    off = math.expm1(read.centres[-1] - read.levels[-1][2])
    if change.verdict == NO_CHANGE and len(read.centres) - 1 in read.spikes and abs(off) > margin:
        why = f"{ALONE} by {percent(off)}: measure both commits with `scalesweep ab`"
        change = replace(change, verdict=INCONCLUSIVE, reason=why)
    return change


def _sides(read: Levels, baseline: Sequence[int] | None) -> tuple[list[int] | str, list[int]]:
    """Sessions of baseline and newest level, without spikes; a text says why there is none."""
    count = len(read.centres)
    if count < STABLE + NEWEST and baseline is None:
        return f"{count} sessions: {STABLE + NEWEST} are needed", []
    levels = [[n for n in range(at, end) if n not in read.spikes] for at, end, _ in read.levels]
    new = levels[-1] or [count - 1]
    if baseline is not None:
        named = set(baseline)
        new = [n for n in new if n not in named]
        return (list(baseline), new) if new else ("no session after the baseline", [])
    older = zip(levels[:-1], read.levels, strict=False)
    if stable := [level for level, (at, end, _) in older if end - at >= STABLE]:
        return stable[-1][-WINDOW:], new
    if len(levels) > 1 and len(new) < STABLE + NEWEST:
        return f"no stable level of {STABLE} sessions before the newest", new
    size = min(STABLE, max(NEWEST, len(new) // 4))
    return new[:-size][-WINDOW:], new[-size:]
