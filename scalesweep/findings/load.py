"""Findings on what other processes took of the cores while runs ran."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scalesweep.core.formatting import counted, finite, listed, percent
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import CONFIRMED, WARNING, Finding, number_of
from scalesweep.tables.machine_load import OTHERS

RULE = "other load"
DISTURBED = 0.1  # share of the cores from which on a run was disturbed
_NAMED = 5


def disturbed_runs(study: ExperimentResults) -> list[Row]:
    """The runs during which other processes took more than ``DISTURBED`` of the cores."""
    return [row for row in _known(study) if row[OTHERS] > DISTURBED]


def other_load(study: ExperimentResults) -> list[Finding]:
    """In how many runs other processes took part of the cores, and which; nothing if in none."""
    known, disturbed = _known(study), disturbed_runs(study)
    if not disturbed:
        return []
    disturbed.sort(key=lambda row: -row[OTHERS])
    most = disturbed[0][OTHERS]
    named = listed([str(row["run_id"]) for row in disturbed], _NAMED)
    every = len(_finished(study))
    text = (
        f"In {len(disturbed)} of {counted(every, 'run')} other processes used more than "
        f"{percent(DISTURBED)} of the cores, at most {percent(most)}: {named}"
        f"{_unknown(every - len(known))}."
    )
    evidence = {
        "experiment": study.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in disturbed[:20]]},
        "numbers": {str(row["run_id"]): row[OTHERS] for row in disturbed[:20]},
    }
    numbers = (
        number_of("disturbed runs", len(disturbed), "1"), number_of("most of the cores", most, "1"),
    )  # fmt: skip
    return [Finding(study.name, RULE, WARNING, text, evidence, numbers)]


def resting_on_disturbed(study: ExperimentResults, found: Sequence[Finding]) -> list[Finding]:
    """The same findings; a confirmed one whose point has disturbed runs says so."""
    bad = disturbed_runs(study)
    return [_said(one, study, bad) for one in found] if bad else list(found)


def _said(one: Finding, study: ExperimentResults, bad: Sequence[Row]) -> Finding:
    key = one.evidence.get("key")
    names = [*study.axes, "source"]
    if one.level != CONFIRMED or not isinstance(key, Mapping) or not {*key} & {*names}:
        return one
    there = [row for row in bad if _of(row, key, names)]
    if not there:
        return one
    known, every = (
        len([row for row in rows if _of(row, key, names)])
        for rows in (_known(study), _finished(study))
    )
    text = (
        f"{one.text} It rests on {len(there)} of {counted(every, 'run')} that other processes "
        f"disturbed{_unknown(every - known)}."
    )
    return replace(one, text=text)


def _unknown(runs: int) -> str:
    return f"; the load of {runs:,} is not known" if runs else ""


def _of(row: Row, key: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a run is of the point, or the points, that a key names."""
    return all(row.get(name) == key[name] for name in names if name in key)


def _known(study: ExperimentResults) -> list[Row]:
    """The finished runs of which the load is known."""
    return [row for row in _finished(study) if finite(row.get(OTHERS))]


def _finished(study: ExperimentResults) -> list[Row]:
    return study.rows("runs", [*study.axes, "source", "run_id", OTHERS])
