"""Verdicts of commits measured alternately (``scalesweep ab``), kept in the history.

``FOLDER/settled/<time>-<digest>.json`` is one measurement of two commits: written once, by rename,
under a name that follows from its content, with a checksum; damaged files are set aside.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from scalesweep.analysis.verdicts import (
    CONFOUNDED,
    IMPROVEMENT,
    INCONCLUSIVE,
    NO_CHANGE,
    REGRESSION,
    Verdict,
)
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, is_whole, read_regular, sealed, write_atomic
from scalesweep.core.record_check import MAX_NUMBER
from scalesweep.history.series_head import SeriesHead
from scalesweep.history.store import BROKEN

_log = logging.getLogger(__name__)

SETTLED = "settled"  # folder of the files
VERSION = 1
_MAX_BYTES = 1 << 24
# What JSON holds of a field.
_TYPES: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    int | None: (int, NoneType),
    float | None: (float, int, NoneType),
}
_Kind = TypeVar("_Kind", "Commit", "SettledPoint", "Settled")
_CHANGED = (REGRESSION, IMPROVEMENT)


@dataclass(frozen=True)
class Commit:
    """A commit: ``time`` in ISO 8601."""

    commit: str
    time: str
    subject: str


@dataclass(frozen=True)
class SettledPoint(SeriesHead):
    """What two commits have shown at a point.

    The fields of ``analysis.paired.Paired`` (None for what is not known), ``p`` corrected for the
    number of points. ``base``, ``new``: geometric means of the pairs' values.
    """

    kind: str
    reason: str
    pairs: int
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    needed: int | None
    base: float | None
    new: float | None


@dataclass(frozen=True)
class Settled:
    """One measurement: of two commits, at some points. ``first_bad``: the two are the commits
    between which a search has found a step; ``between``: commits between them that could not be
    judged."""

    started: str
    campaign: str
    results: str
    repository: str
    base: Commit
    new: Commit
    points: Sequence[SettledPoint]
    first_bad: bool = False
    between: int = 0


def keep(folder: Path, outcome: Settled) -> Path:
    """Write a measurement into a history, once; returns its file. Raises UserError."""
    content = {"version": VERSION, **asdict(outcome)}
    stamp = "".join(c for c in outcome.started[:19] if c not in "-:")
    path = folder / SETTLED / f"{stamp}Z-{digest_of(content, 4)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write_atomic(path, sealed(content, indent=1))
    except OSError as error:
        where = error.filename or path
        raise UserError(f"{where}: the history cannot be written: {error.strerror}") from None
    return path


def load_settled(folder: Path) -> tuple[list[Settled], dict[str, str]]:
    """All measurements of a history, the newest first, and damaged files with the reason; these are
    set aside. Raises UserError for a file of a newer version."""
    outcomes, broken = [], {}
    for path in sorted((folder / SETTLED).glob("*.json")):
        try:
            outcomes.append(_read(path))
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            why = " ".join(str(error).split())[:200] or "not as it was written"
            broken[path.name] = why
            _log.warning("%s: damaged (%s): set aside as %s%s", path, why, path.name, BROKEN)
            try:
                path.replace(path.with_name(path.name + BROKEN))
            except OSError:
                _log.warning("%s: cannot be renamed: left out", path)
    return sorted(outcomes, key=lambda outcome: outcome.started, reverse=True), broken


def _read(path: Path) -> Settled:
    content = read_regular(path, _MAX_BYTES)
    if not is_whole(content, needed=True):
        raise ValueError("its content has changed")
    value: dict[str, Any] = json.loads(content)
    version = value.pop("version")
    if version > VERSION:
        raise UserError(
            f"{path}: written by a newer scalesweep (version {version} of settled verdicts, this "
            f"one reads {VERSION}): use that one"
        )
    del value["digest"]
    value["base"], value["new"] = (
        _checked_object(Commit, value["base"]),
        _checked_object(Commit, value["new"]),
    )
    value["points"] = tuple(_checked_object(SettledPoint, point) for point in value["points"])
    return _checked_object(Settled, value)


def _checked_object(kind: type[_Kind], value: dict[str, Any]) -> _Kind:
    """An object of a data class; raises ValueError or TypeError for fields that are of another
    type, or that no measurement has."""
    made = kind(**value)
    for entry in fields(kind):
        held = getattr(made, entry.name)
        if entry.type in _TYPES and type(held) not in _TYPES[entry.type]:
            raise TypeError(f"{entry.name} is not of its type")
        if isinstance(held, int | float) and not abs(held) < MAX_NUMBER:
            raise ValueError(f"{entry.name} is out of range")
        if entry.name == "time" and held and datetime.fromisoformat(held).tzinfo is None:
            raise ValueError("time is in no time zone")
        if entry.name == "better" and held not in ("higher", "lower"):
            raise ValueError("better is neither higher nor lower")
    return made


@dataclass(frozen=True)
class Evidence:
    """A point of a measurement that is about the step of a series."""

    of: Settled
    point: SettledPoint


def evidence_for(
    key: Mapping[str, Any],
    base: Iterable[str] | None,
    new: Iterable[str],
    among: Iterable[Settled],
) -> Evidence | None:
    """The newest measurement of a commit of either side of a step at the point of a series.

    ``key``: the fields that a series is of; ``base``, ``new``: full commits of its two sides; None:
    against any other commit.
    """
    olds, news = None if base is None else set(base), set(new)
    for outcome in among:
        if (olds is None or outcome.base.commit in olds) and outcome.new.commit in news:
            for point in outcome.points:
                if all(getattr(point, name) == value for name, value in key.items()):
                    return Evidence(outcome, point)
    return None


def with_evidence(verdict: Verdict, evidence: Evidence | None) -> Verdict:
    """The verdict of a history after its commits have been measured alternately.

    Sessions differ in more than their commits, alternate runs do not: what these show counts. A
    change that they do not show is the machine's or the surroundings': confounded. One that
    they show is no longer confounded; what was inconclusive, or a change too small or too new for
    the sessions to show, gets their ratio.
    """
    if evidence is None or (ratio := evidence.point.ratio) is None:
        return verdict
    kind, point = evidence.point.kind, evidence.point
    if verdict.kind in (*_CHANGED, CONFOUNDED):
        if kind == NO_CHANGE:
            why = "the commits measured alternately show no change"
            reason = f"{why}; {verdict.reason}" if verdict.reason else why
            return replace(verdict, kind=CONFOUNDED, reason=reason)
        same = kind in _CHANGED and (ratio > 1) == (verdict.ratio > 1)
        return replace(verdict, kind=kind, reason="") if same else verdict
    if kind in _CHANGED or (verdict.kind == INCONCLUSIVE and kind == NO_CHANGE):
        return replace(
            verdict, kind=kind, reason="", ratio=ratio, low=point.low or verdict.low,
            high=point.high or verdict.high, sessions=None, repeats=None,
        )  # fmt: skip
    return verdict


def with_newest(verdict: Verdict, evidence: Evidence) -> Verdict:
    """The verdict of a history whose newest commit was measured alternately with any other one.

    A change that was shown counts at once, before sessions can show it; nothing else does, since it
    need not be about the step that the sessions show.
    """
    changed = evidence.point.kind in _CHANGED and verdict.kind not in (*_CHANGED, CONFOUNDED)
    return with_evidence(verdict, evidence) if changed else verdict
