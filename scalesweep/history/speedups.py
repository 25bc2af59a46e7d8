"""How scaling itself changed: the points of a series over workers, by session."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scalesweep.analysis.stats import ratio_interval
from scalesweep.analysis.types import Floats
from scalesweep.history.judged import Judged
from scalesweep.history.session_facts import MOST_SESSIONS, SessionFacts


@dataclass(frozen=True)
class Speedup:
    """A scaling series and metric over its newest sessions, in their order.

    ``values[count]``: ``[3, session]``, speedup against ``base`` in the same session and the ends
    of its 95 % interval, NaN for what is not known. ``ideals``: the speedup that an efficiency of 1
    would be; None where the kind of scaling is not known. ``main``: the point of ``base``.
    """

    title: str
    scale: str
    base: int
    counts: Sequence[int]
    ideals: Sequence[float | None]
    sessions: Sequence[SessionFacts]
    values: Sequence[Floats]
    main: Judged


def speedups_of(series: Iterable[Judged]) -> list[Speedup]:
    """A speedup for each scaling series and metric of two counts or more, main metrics first.

    All sessions are held against the smallest count of the newest one: a base that changed from
    session to session would look like a change of scaling. Where a session lacks that count, or a
    point, nothing is known of it.
    """
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for judged in series:
        if judged.series and judged.ideal:
            key = (
                judged.site, judged.source, judged.benchmark, judged.version, judged.device,
                judged.metric, judged.phase, judged.scale, judged.ideal, judged.series,
            )  # fmt: skip
            groups.setdefault(key, []).append(judged)
    made = (_speedup(group) for group in groups.values())
    speedups = [speedup for speedup in made if speedup is not None]
    return sorted(speedups, key=lambda speedup: not speedup.main.main)


def _speedup(group: Sequence[Judged]) -> Speedup | None:
    """The speedup of the points of one series; of several with as many workers the one that was
    measured last."""
    by_count: dict[int, Judged] = {}
    for judged in sorted(group, key=lambda judged: judged.sessions[-1].started):
        by_count[judged.workers] = judged
    newest = max(
        (session for judged in by_count.values() for session in judged.sessions),
        key=lambda session: session.started,
    )
    there = [
        count for count, judged in by_count.items()
        if any(session.session == newest.session for session in judged.sessions)
    ]  # fmt: skip
    base = min(there)
    counts = sorted(count for count in by_count if count > base)
    if not counts:
        return None
    first = by_count[base]
    sessions = first.sessions[-MOST_SESSIONS:]
    bases = {s.session: v for s, v in zip(first.sessions, first.values, strict=True)}
    scaling = json.loads(first.series)[0]
    values = []
    for count in counts:
        judged = by_count[count]
        ours = {s.session: v for s, v in zip(judged.sessions, judged.values, strict=True)}
        rows = [
            _against(ours.get(s.session), bases[s.session], first.ideal, scaling, count / base)
            for s in sessions
        ]
        values.append(np.array(rows).T)
    known = np.flatnonzero(np.isfinite([array[0] for array in values]).any(axis=0)).tolist()
    if not known:
        return None
    ideal = None if first.ideal == "time" and scaling == "none" else True
    return Speedup(
        title=_title(list(by_count.values())),
        scale=first.scale,
        base=base,
        counts=counts,
        ideals=[count / base if ideal else None for count in counts],
        sessions=[sessions[place] for place in known],
        values=[array[:, known] for array in values],
        main=first,
    )


def _against(
    values: Floats | None, base: Floats, ideal: str, scaling: str, factor: float
) -> tuple[float, float, float]:
    """Speedup of a point over the base in one session, and its 95 % interval."""
    if values is None or values.min() <= 0 or base.min() <= 0:
        return (np.nan, np.nan, np.nan)
    timed = ideal == "time"
    top, bottom = (base, values) if timed else (values, base)
    # Of a metric that ideally stays the same the ratio is the efficiency.
    scale = factor if ideal == "rank" or (timed and scaling == "weak") else 1.0
    bounds = ratio_interval(top, bottom, scale)
    return (scale * float(top.mean()) / float(bottom.mean()), bounds.low, bounds.high)


def _title(points: Sequence[Judged]) -> str:
    """What the points of a series have in common of their labels."""
    words = [judged.label.split(", ") for judged in points]
    shared = [word for word in words[0] if word and all(word in other for other in words)]
    return ", ".join(shared)
