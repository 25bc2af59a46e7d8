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


def disturbed_runs(results: ExperimentResults) -> list[Row]:
    """The runs during which other processes took more than ``DISTURBED`` of the cores."""
    return [row for row in _known(results) if row[OTHERS] > DISTURBED]


def other_load(results: ExperimentResults) -> list[Finding]:
    """In how many runs other processes took part of the cores, and which; nothing if in none."""
    known, disturbed = _known(results), disturbed_runs(results)
    if not disturbed:
        return []
    disturbed.sort(key=lambda row: -row[OTHERS])
    most = disturbed[0][OTHERS]
    named = listed([str(row["run_id"]) for row in disturbed], _NAMED)
    every = len(_finished(results))
    text = (
        f"In {len(disturbed)} of {counted(every, 'run')} other processes used more than "
        f"{percent(DISTURBED)} of the cores, at most {percent(most)}: {named}"
        f"{_unknown(every - len(known))}."
    )
    evidence = {
        "experiment": results.name,
        "table": "runs",
        "key": {"run_id": [row["run_id"] for row in disturbed[:20]]},
        "numbers": {str(row["run_id"]): row[OTHERS] for row in disturbed[:20]},
    }
    numbers = (
        number_of("disturbed runs", len(disturbed), "1"), number_of("most of the cores", most, "1"),
    )  # fmt: skip
    return [Finding(results.name, RULE, WARNING, text, evidence, numbers)]


def resting_on_disturbed(results: ExperimentResults, findings: Sequence[Finding]) -> list[Finding]:
    """The same findings; a confirmed one whose point has disturbed runs says so."""
    bad = disturbed_runs(results)
    return [_said(finding, results, bad) for finding in findings] if bad else list(findings)


def _said(finding: Finding, results: ExperimentResults, bad: Sequence[Row]) -> Finding:
    key = finding.evidence.get("key")
    names = [*results.axes, "source"]
    if finding.level != CONFIRMED or not isinstance(key, Mapping) or not {*key} & {*names}:
        return finding
    there = [row for row in bad if _of(row, key, names)]
    if not there:
        return finding
    known, every = (
        len([row for row in rows if _of(row, key, names)])
        for rows in (_known(results), _finished(results))
    )
    text = (
        f"{finding.text} It rests on {len(there)} of {counted(every, 'run')} that other processes "
        f"disturbed{_unknown(every - known)}."
    )
    return replace(finding, text=text)


def _unknown(runs: int) -> str:
    return f"; the load of {runs:,} is not known" if runs else ""


def _of(row: Row, key: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether a run is of the point, or the points, that a key names."""
    return all(row.get(name) == key[name] for name in names if name in key)


def _known(results: ExperimentResults) -> list[Row]:
    """The finished runs of which the load is known."""
    return [row for row in _finished(results) if finite(row.get(OTHERS))]


def _finished(results: ExperimentResults) -> list[Row]:
    return results.rows("runs", [*results.axes, "source", "run_id", OTHERS])
