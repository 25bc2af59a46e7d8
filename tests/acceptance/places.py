"""Where a results folder keeps what the gates read: what moves is one line here."""

import csv
import json
from functools import cache
from pathlib import Path

# Tables whose file is not named as a gate asks for them.
FILES = {"breakdown": "efficiency"}
FIGURES = {"scaling": "figures/{experiment}/scaling*.svg"}
# What an interval is of -> table and bounds, of a metric in a phase.
INTERVALS = {
    "mean": ("points", "{metric}_low_{phase}", "{metric}_high_{phase}"),
    "efficiency": ("scaling", "{stem}_eff_low_{phase}", "{stem}_eff_high_{phase}"),
}
REPORT = "report.html"
NORMAL = "normal/normal.csv"
# What Snakemake is asked for to get the tables alone.
TABLES_RULE = "tables"
# A row a planned run: run_id, status (new, done, failed), cause.
PLAN = "plan.csv"
# Of every finished run; its folder is named by the run's id.
RECORDS = "runs/*/*/record.json"
# What a finding is when it claims something and the claim stands.
CLEAR = "clear"
# Rules that say whether a series is efficient, and what makes its steps longer.
VERDICT = "verdict"
STEP_RULES = frozenset({"largest loss", "causes"})
# Columns of `causes`, and of `breakdown`.
CAUSE = {"cause": "cause", "ranks": "step_ranks", "ms": "ms", "sure": "clear"}
TERM = {"term": "term", "loss": "loss"}

Row = dict[str, str]


def read(results: Path, table: str, experiment: str) -> list[Row]:
    """The rows of a table of an experiment: text, empty where nothing is known."""
    return _rows(results / table_file(table, experiment))


def table_file(table: str, experiment: str) -> str:
    """Where a table of an experiment is."""
    return f"tables/{experiment}/{FILES.get(table, table)}.csv"


def intervals(
    results: Path, experiment: str, of: str, metric: str, phase: str
) -> list[tuple[Row, float, float]]:
    """The rows that have an interval, with its bounds."""
    table, *columns = INTERVALS[of]
    words = {"metric": metric, "stem": metric.removesuffix("_throughput"), "phase": phase}
    low, high = (column.format(**words) for column in columns)
    rows = read(results, table, experiment)
    return [(row, float(row[low]), float(row[high])) for row in rows if row[low]]


def plan(results: Path) -> list[Row]:
    """The rows of the plan."""
    return _rows(results / PLAN)


def records(results: Path) -> dict[str, bytes]:
    """Run id -> record of every finished run."""
    return {path.parent.name: path.read_bytes() for path in results.glob(RECORDS)}


def _rows(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def experiments(results: Path, table: str) -> list[str]:
    """The experiments that have a table."""
    return sorted(path.parent.name for path in results.glob(table_file(table, "*")))


@cache
def fixed(results: Path, experiment: str) -> Row:
    """The parameters that an experiment holds constant, which are no columns of its tables."""
    plan = json.loads((results / "plan.json").read_text())
    (values,) = (each["fixed"] for each in plan["experiments"] if each["name"] == experiment)
    return {name: str(value) for name, value in values.items()}
