"""What the charts of a history's page are drawn from (resources/history.js)."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from scalesweep.analysis.stats import t_quantile
from scalesweep.core.formatting import listed
from scalesweep.history.changes import changed_facts
from scalesweep.history.judged import Judged
from scalesweep.history.session_facts import MOST_SESSIONS, SessionFacts
from scalesweep.history.views import Views, component_data, speedup_data
from scalesweep.history.words import sentence_of, title_of
from scalesweep.report.links import Links

MOST_VALUES = 200_000  # of a page: more would make it slow to open
_DIGITS = 7
_MOST_CHANGES = 4  # facts that a mark names


def chart_data(
    groups: Mapping[str, Sequence[Judged]], views: Views, links: Links
) -> dict[str, Any]:
    """The data of the page's charts: ``groups`` (id of a chart -> its series, the gravest first),
    their ``components`` and ``speedups``, and the ``sessions`` that all of these name by place.

    Series beyond ``MOST_VALUES`` numbers are left out, the least grave first.
    """
    sessions = _Sessions(links)
    left = MOST_VALUES
    drawn: dict[str, list[dict[str, Any]]] = {name: [] for name in groups}
    # In turns, so that every group has some.
    for turn in range(max(map(len, groups.values()), default=0)):
        for name, group in groups.items():
            if turn < len(group) and group[turn].shown is not None and left > 0:
                series = _series(group[turn], sessions)
                left -= sum(map(len, series["repeats"])) + len(series["centres"])
                drawn[name].append(series)
    chart_of = {id(series): name for name, group in groups.items() for series in group}
    components: dict[str, list[Any]] = {}
    for judged, parts in views.points:
        places = [sessions.place(session, judged.site) for session in parts.sessions]
        data = component_data(judged, parts, places)
        components.setdefault(chart_of[id(judged)], []).append(data)
    speedups: dict[str, list[Any]] = {}
    for speedup in views.speedups:
        places = [sessions.place(session, speedup.main.site) for session in speedup.sessions]
        speedups.setdefault(chart_of[id(speedup.main)], []).append(speedup_data(speedup, places))
    return {
        "groups": drawn, "components": components, "speedups": speedups, "sessions": sessions.known
    }  # fmt: skip


class _Sessions:
    """The sessions of a page, each once."""

    def __init__(self, links: Links) -> None:
        self.known: list[dict[str, Any]] = []
        self._links = links
        self._places: dict[tuple[str, str, str], int] = {}
        self._there: dict[Path, str] = {}

    def place(self, session: SessionFacts, site: str) -> int:
        """The place of a session, noted if it is new."""
        key = (session.session, session.results, site)
        if key not in self._places:
            self._places[key] = len(self.known)
            results = Path(session.results)
            self.known.append(
                {
                    "name": session.name,
                    "started": session.started.isoformat(timespec="seconds"),
                    "committed": session.commit_time.isoformat() if session.commit_time else None,
                    "subject": session.subject,
                    "tags": session.tags,
                    "hosts": session.hosts,
                    "results": session.results,
                    "report": self._link(results / "report.html"),
                    "records": self._link(results / "runs" / site),
                }
            )
        return self._places[key]

    def _link(self, path: Path) -> str:
        """The address of what is still there; empty where it is not."""
        if path not in self._there:
            self._there[path] = self._links.to(path) if path.exists() else ""
        return self._there[path]


def _series(series: Judged, sessions: _Sessions) -> dict[str, Any]:
    """What the chart of a point needs: its newest sessions with repeats and runs, which of them are
    spikes or of the base, and levels with the band that noise explains."""
    shown = series.shown
    assert shown is not None
    first = max(0, len(series.sessions) - MOST_SESSIONS)
    places = range(first, len(series.sessions))
    half = t_quantile(shown.degrees) * shown.between if shown.degrees > 0 else 0.0
    base = shown.mean(series.verdict.base or [first])
    known = [sessions.place(series.sessions[n], series.site) for n in places]
    return {
        "title": f"{series.point}: {title_of(series)}",
        "metric": series.metric,
        "unit": series.unit,
        "better": series.better,
        "verdict": series.verdict.kind,
        "said": sentence_of(series),
        "base": _rounded(math.exp(base)),
        "sessions": known,
        "centres": [_rounded(math.exp(shown.centres[n])) for n in places],
        "repeats": [list(map(_rounded, series.values[n].tolist())) for n in places],
        # Of sessions whose records are still there.
        "runs": [
            list(series.runs[n]) if sessions.known[place]["records"] else []
            for n, place in zip(places, known, strict=True)
        ],
        "spikes": [n - first for n in places if shown.spikes[n]],
        "of_base": [n - first for n in series.verdict.base if n >= first],
        "levels": [
            [max(begin, first) - first, end - 1 - first,
             *(_rounded(math.exp(level + part)) for part in (-half, 0.0, half))]
            for begin, end, level in shown.levels if end > first
        ],
        "changes": [
            [place - first, listed([f"{fact} {old} → {new}" for fact, (old, new) in what.items()],
                                   _MOST_CHANGES)]
            for before, place in pairwise(places)
            if (what := changed_facts([series.sessions[before]], [series.sessions[place]]))
        ],
    }  # fmt: skip


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
