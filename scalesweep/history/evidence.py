"""Verdicts of commits measured alternately (``scalesweep ab``), kept in the history.

``FOLDER/alternate/<digest>.json`` is one measurement of two commits at some points: written
once, by rename, under a name that follows from its content.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of, write_atomic
from scalesweep.judge.change import CHANGED, CONFOUNDED, INCONCLUSIVE, NO_CHANGE, Change

_log = logging.getLogger(__name__)

ALTERNATE = "alternate"  # folder of the files


@dataclass(frozen=True)
class Evidence:
    """What two commits have shown at a point, measured alternately.

    ``point``: its fields of ``series.KEY``; ``first_bad``: a search found the step between the two;
    ``counts``: it decides the verdict of a line.
    """

    started: str
    base: str
    new: str
    subject: str
    label: str
    point: Mapping[str, Any]
    change: Change
    first_bad: bool = False
    counts: bool = False


def keep(folder: Path, evidence: Sequence[Evidence]) -> Path:
    """Write a measurement of two commits into a history, once. Raises UserError."""
    content = json.dumps([asdict(entry) for entry in evidence], indent=1, default=list)
    path = folder / ALTERNATE / f"{digest_of(content, 8)}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content)
    except OSError as error:
        where = error.filename or path
        raise UserError(f"{where}: the history cannot be written: {error.strerror}") from None
    return path


def load_evidence(folder: Path) -> list[Evidence]:
    """All that was measured alternately, the newest first; a file that cannot be read is left
    out with a warning."""
    evidence = []
    for path in sorted((folder / ALTERNATE).glob("*.json")):
        try:
            for entry in json.loads(path.read_text()):
                evidence.append(Evidence(**{**entry, "change": Change(**entry["change"])}))
        except (OSError, ValueError, TypeError, KeyError) as error:
            _log.warning("%s: cannot be read (%s): left out", path, error)
    return sorted(evidence, key=lambda entry: entry.started, reverse=True)


def with_evidence(change: Change, alternate: Change) -> Change:
    """The verdict of a history after its commits have been measured alternately.

    Sessions differ in more than their commits, alternate runs do not: what these show counts. A
    change that they do not show is confounded. One that they show no longer is. What was open gets
    their ratio.
    """
    shown = alternate.verdict
    if change.verdict in (*CHANGED, CONFOUNDED):
        if shown == NO_CHANGE:
            why = "the commits measured alternately show no change"
            return replace(change, verdict=CONFOUNDED, reason=why)
        same = shown in CHANGED and (alternate.ratio > 1) == (change.ratio > 1)
        return replace(change, verdict=shown, reason="") if same else change
    if shown in CHANGED or (change.verdict == INCONCLUSIVE and shown == NO_CHANGE):
        return replace(
            change, verdict=shown, reason="", ratio=alternate.ratio, low=alternate.low,
            high=alternate.high, needed=None,
        )  # fmt: skip
    return change
