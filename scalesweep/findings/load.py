"""Findings on what other processes took of the cores while runs ran."""

from scalesweep.core.formatting import counted, finite, listed, percent
from scalesweep.experiment.results import ExperimentResults, Row
from scalesweep.findings.base import WARNING, Finding, number_of
from scalesweep.tables.machine_load import DISTURBED, LEFT_OUT, OTHERS

RULE = "other load"
_NAMED = 5


def disturbed_runs(results: ExperimentResults) -> list[Row]:
    """The runs during which other processes took more than ``DISTURBED`` of the cores."""
    return [row for row in _finished(results) if _others(row) > DISTURBED]


def other_load(results: ExperimentResults) -> list[Finding]:
    """In how many runs other processes took part of the cores, which, and how many of them enter no
    estimate; nothing if in none."""
    disturbed = sorted(disturbed_runs(results), key=lambda row: -float(row[OTHERS]))
    if not disturbed:
        return []
    most, every = disturbed[0][OTHERS], len(_finished(results))
    unknown = sum(not finite(row.get(OTHERS)) for row in _finished(results))
    out = sum(bool(row.get(LEFT_OUT)) for row in disturbed)
    text = (
        f"In {len(disturbed)} of {counted(every, 'run')} other processes used more than "
        f"{percent(DISTURBED)} of the cores, at most {percent(most)}: "
        f"{listed([str(row['run_id']) for row in disturbed], _NAMED)}; estimates are without {out}"
        f"{f'; the load of {unknown:,} is not known' if unknown else ''}."
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


def _others(row: Row) -> float:
    share = row.get(OTHERS)
    return float(share) if share is not None and finite(share) else 0.0


def _finished(results: ExperimentResults) -> list[Row]:
    return results.rows("runs", [*results.axes, "source", "run_id", OTHERS, LEFT_OUT])
